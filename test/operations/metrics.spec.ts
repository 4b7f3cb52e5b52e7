import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { SERVICE_NAMES, type ServiceName } from '@sharedos/contracts';
import { METRIC, type MetricSpec, metricsOf } from '@sharedos/telemetry';
import { waitFor } from '@sharedos/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { ALICE, NAMESPACE, type TestSystem, startTestSystem } from '../support/test-system.ts';

const read = (path: string): string => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), 'utf8');
const page = read('docs/metrics.md');

interface Documented {
  readonly name: string;
  readonly kind: string;
  readonly labels: readonly string[];
}

/** The rows of the page, by the heading they stand under. */
const documented = (service: ServiceName): readonly Documented[] =>
  page
    .split(/^## /m)
    .filter((section) => section.startsWith('Every service') || section.startsWith(service))
    .flatMap((section) => [...section.matchAll(/^\| `(sharedos_\w+)` \| (\w+) \| ([^|]*)\|/gm)])
    .map(([, name, kind, labels]) => ({
      name: name as string,
      kind: kind as string,
      labels: [...(labels as string).matchAll(/`(\w+)`/g)].map(([, label]) => label as string),
    }));

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const samplesOf = (text: string): readonly Sample[] =>
  [...text.matchAll(/^([a-z_]+)(?:\{(.*)\})? (\S+)$/gm)].map(([, name, labels, value]) => ({
    name: name as string,
    labels: Object.fromEntries(
      [...(labels ?? '').matchAll(/(\w+)="([^"]*)"/g)].map(([, label, text]) => [label as string, text as string]),
    ),
    value: Number(value),
  }));

let system: TestSystem;
const ports = new Map<ServiceName, number>();

beforeAll(async () => {
  system = await startTestSystem({ env: () => ({ SHAREDOS_HEALTH_PORT: '0' }) });
  for (const service of SERVICE_NAMES) {
    const [process] = system.services[service];
    const [, port] = /"event":"ready".*"port":(\d+)/.exec(process?.output() ?? '') ?? [];
    ports.set(service, Number(port));
  }
  await system.letAliceRunScout();
  await system.grant('read-notes', { path: ['notes'], actions: ['read'] }, { constraints: { maxUses: 5 } });
  await system.files(ALICE, { 'notes/plan.md': 'plan', 'private/diary.md': 'diary' });
  await system.run({
    calls: [
      { tool: 'files.read', arguments: { path: ['notes', 'plan.md'] } },
      { tool: 'files.read', arguments: { path: ['private', 'diary.md'] } },
    ],
  });
});
afterAll(() => system?.stop());

const ask = (service: ServiceName, path: string): Promise<Response> => fetch(`http://127.0.0.1:${ports.get(service)}${path}`);
const scrape = async (service: ServiceName): Promise<string> => (await ask(service, '/metrics')).text();
const value = (samples: readonly Sample[], name: string, labels: Readonly<Record<string, string>> = {}): number =>
  samples
    .filter((sample) => sample.name === name && Object.entries(labels).every(([label, text]) => sample.labels[label] === text))
    .reduce((sum, sample) => sum + sample.value, 0);

describe.each(SERVICE_NAMES)('the metrics of the %s', (service) => {
  it('are those that the page names for it, of the kind it says', async () => {
    const declared = [...(await scrape(service)).matchAll(/^# TYPE (sharedos_\w+) (\w+)$/gm)].map(([, name, kind]) => ({
      name: (name as string).replace(/_total$/, ''),
      kind,
    }));
    const said = documented(service).map(({ name, kind }) => ({ name, kind }));
    expect(said.length).toBeGreaterThan(8);
    expect(declared.toSorted((a, b) => a.name.localeCompare(b.name))).toEqual(said.toSorted((a, b) => a.name.localeCompare(b.name)));
  });
  it('have the labels that the page names, and no other', async () => {
    const labels = new Map(documented(service).map((one) => [one.name, one.labels]));
    for (const sample of samplesOf(await scrape(service))) {
      const name = sample.name.replace(/_(total|bucket|sum|count)$/, '');
      const own = Object.keys(sample.labels).filter((label) => label !== 'le');
      expect([name, own]).toEqual([name, labels.get(name)]);
    }
  });
  it('say what it is and that it may be relied on', async () => {
    const samples = samplesOf(await scrape(service));
    expect(value(samples, 'sharedos_ready')).toBe(1);
    expect(value(samples, 'sharedos_process_info', { service })).toBe(1);
    expect(value(samples, 'sharedos_process_resident_bytes')).toBeGreaterThan(1_000_000);
  });
  it('name nobody but namespaces', async () => {
    const text = await scrape(service);
    for (const secret of ['alice', 'scout', 'read-notes', 'diary', system.stack.credentials.service(service).password])
      expect(text).not.toContain(secret);
  });
  it('answers whether it lives and may be relied on, and nothing else', async () => {
    expect(await (await ask(service, '/healthz')).json()).toEqual({ status: 'ok' });
    expect(await (await ask(service, '/readyz')).json()).toEqual({ status: 'ok', protocolVersion: '1' });
    expect((await ask(service, '/')).status).toBe(404);
    expect((await fetch(`http://127.0.0.1:${ports.get(service)}/metrics`, { method: 'POST' })).status).toBe(405);
  });
});

describe('after one turn, with a call that was allowed and one that was not', () => {
  it('the authorizer has counted decisions by outcome and reason', async () => {
    const samples = samplesOf(await scrape('authorizer'));
    expect(value(samples, 'sharedos_decisions_total', { outcome: 'allowed', reason: 'allowed' })).toBeGreaterThan(0);
    expect(value(samples, 'sharedos_decisions_total', { outcome: 'denied' })).toBeGreaterThan(0);
    expect(value(samples, 'sharedos_decisions_unavailable_total')).toBe(0);
    expect(value(samples, 'sharedos_requests_total', { verb: 'authority.decide', code: 'ok' })).toBeGreaterThan(0);
    expect(value(samples, 'sharedos_request_duration_seconds_count', { verb: 'authority.decide' })).toBeGreaterThan(0);
  });
  it('the authorizer shows its fold, and an open epoch of the counters', async () => {
    const samples = samplesOf(await scrape('authorizer'));
    expect(value(samples, 'sharedos_log_fold_position')).toBeGreaterThan(0);
    expect(value(samples, 'sharedos_log_fold_lag')).toBe(0);
    expect(value(samples, 'sharedos_usage_open')).toBe(1);
    expect(samples.filter(({ name }) => name === 'sharedos_usage_epoch_info')).toHaveLength(1);
  });
  it('the executor has counted the turn and what it took, and nothing waits', async () => {
    const samples = samplesOf(await scrape('tool-executor'));
    expect(value(samples, 'sharedos_turns_total', { status: 'succeeded' })).toBe(1);
    expect(value(samples, 'sharedos_turn_duration_seconds_count')).toBe(1);
    expect(value(samples, 'sharedos_queue_depth', { namespace: NAMESPACE })).toBe(0);
    expect(value(samples, 'sharedos_queue_age_seconds')).toBe(0);
  });
  it('the projector has caught up', async () => {
    await waitFor(
      'the projector to catch up',
      async () => {
        const samples = samplesOf(await scrape('audit-projector'));
        return value(samples, 'sharedos_ledger_pending') + value(samples, 'sharedos_projection_lag') === 0;
      },
      20_000,
    );
    const samples = samplesOf(await scrape('audit-projector'));
    expect(value(samples, 'sharedos_projection_position')).toBeGreaterThan(0);
    expect(value(samples, 'sharedos_ledger_records_total', { type: 'ended' })).toBe(1);
  });
});

describe('the page of metrics', () => {
  it('names each metric of the system once, under the service that has it', () => {
    const sections = (name: string): readonly string[] =>
      SERVICE_NAMES.filter((service) => documented(service).some((one) => one.name === name));
    for (const [metric, spec] of Object.entries(METRIC) as [keyof typeof METRIC, MetricSpec][])
      expect([spec.name, sections(spec.name)]).toEqual([spec.name, SERVICE_NAMES.filter((service) => metricsOf(service).includes(metric))]);
  });
});

describe('the alert rules', () => {
  const { groups } = parse(read('deploy/alerts.yml')) as {
    groups: { rules: { alert: string; expr: string; annotations: { runbook: string } }[] }[];
  };
  const rules = groups.flatMap((group) => group.rules);
  const names = Object.values(METRIC).map(({ name, kind }) => (kind === 'counter' ? `${name}_total` : name));

  it.each(rules.map(({ alert, expr }) => [alert, expr]))('%s asks only for metrics that there are', (_, expr) => {
    const asked = [...expr.matchAll(/sharedos_\w+/g)].map(([name]) => name);
    expect(asked.length).toBeGreaterThan(0);
    expect(asked.filter((name) => !names.some((known) => known === name))).toEqual([]);
  });
  it('have a section of the runbook each, and the runbook has no other', () => {
    const sections = [...read('docs/operating.md').matchAll(/^### (\w+)$/gm)].map(([, name]) => name);
    expect(new Set(sections)).toEqual(new Set(rules.map(({ alert }) => alert)));
    for (const { alert, annotations } of rules) expect(annotations.runbook).toBe(`docs/operating.md#${alert.toLowerCase()}`);
  });
});
