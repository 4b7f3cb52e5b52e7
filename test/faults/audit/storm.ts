import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Bus } from '@sharedos/bus';
import { auditSubject } from '@sharedos/contracts';
import { type LocalStack, startLocalStack, waitFor } from '@sharedos/testing';
import { connectAs } from '../../support/evidence.ts';
import { ALICE, PRINCIPALS } from '../../support/test-system.ts';
import { type Finding, allHold } from '../finding.ts';
import { judge } from './judge.ts';
import { CALM_MS, type Projector, headOf, rebuild, startProjector, upToDate } from './projectors.ts';
import { NAMESPACES, RecordWriter, ledgerSubject } from './writers.ts';

export interface AuditStormOptions {
  /** Records to be made, in all. */
  readonly events: number;
  /** Connections to be dropped while they are. */
  readonly drops: number;
  /** Projectors to be killed in between. */
  readonly kills: number;
}

export interface AuditStormReport extends AuditStormOptions {
  /** Messages that the stream of records holds: each record, those written twice, those published again, and those that are none. */
  readonly stored: number;
  readonly flips: number;
  readonly findings: readonly Finding[];
  readonly ok: boolean;
  readonly seconds: number;
}

export interface Watchers {
  readonly onProgress: (line: string) => void;
  /** What the projectors print. */
  readonly onLine: (line: string) => void;
}

const WRITERS = 20;
/** Of them, those who write into the ledger; the others write into the audit themselves. */
const LEDGER_WRITERS = 14;
const quiet = (): void => undefined;

/**
 * Twenty write records at once while two projectors lose their connections and are killed, and the broker is restarted; then a third
 * is built from the beginning, and what the three hold is held against the streams and against what was acknowledged.
 */
export const runAuditStorm = async (
  options: AuditStormOptions,
  { onProgress = quiet, onLine = quiet }: Partial<Watchers> = {},
): Promise<AuditStormReport> => {
  const startedAt = performance.now();
  const closers: (() => Promise<unknown>)[] = [];
  try {
    const folder = await mkdtemp(join(tmpdir(), 'audit-storm-'));
    closers.push(() => rm(folder, { recursive: true }));
    const stack = await startLocalStack({ principals: PRINCIPALS, roots: { one: [ALICE] } });
    closers.push(stack.stop);
    const lines: string[] = [];
    const print = (line: string): void => {
      lines.push(line);
      onLine(line);
    };
    const place = { stack, folder, onLine: print };
    const [first, second] = [await startProjector(place, 'first'), await startProjector(place, 'second')];
    closers.push(first.front.close, second.front.close);
    const asProjector = await connectAs(stack, 'audit-projector');
    closers.push(() => asProjector.close());
    const writers = await startWriters(stack);
    closers.push(() => Promise.all(writers.map(({ bus }) => bus.close())));

    await play(options, { stack, projectors: [first, second], writers, asProjector, onProgress });
    const unreadable = await writeUnreadable(asProjector, writers);
    onProgress('waiting for calm …');
    for (const { name, model } of [first, second]) await upToDate(asProjector, name, model);
    await Promise.all([first.stop(), second.stop()]);
    onProgress('building a third from the beginning …');
    const rebuilt = await rebuild(place, 'rebuilt', asProjector);
    onProgress('judging …');
    const stored = await headOf(asProjector, 'AUDIT');
    const { flips, findings } = await judge({
      written: writers.flatMap(({ written }) => written),
      unreadable,
      stored,
      lines,
      models: { 'the first': first.model, 'the second': second.model, 'the rebuilt one': rebuilt.model },
      rebuilt: rebuilt.model,
      publishedByRebuild: rebuilt.published,
      keys: stack.sealKeys,
    });
    const ok = allHold(findings);
    return { ...options, stored, flips, findings, ok, seconds: Math.round((performance.now() - startedAt) / 1_000) };
  } finally {
    for (const close of closers.reverse()) await close().catch(() => undefined);
  }
};

const startWriters = (stack: LocalStack): Promise<readonly RecordWriter[]> =>
  Promise.all(
    Array.from({ length: WRITERS }, async (_, number) => {
      const bus = await connectAs(stack, 'tool-executor');
      return new RecordWriter(bus, number, number < LEDGER_WRITERS ? 'ledger' : 'audit');
    }),
  );

interface Scene {
  readonly stack: LocalStack;
  readonly projectors: readonly [Projector, Projector];
  readonly writers: readonly RecordWriter[];
  readonly asProjector: Bus;
  readonly onProgress: (line: string) => void;
}

/** One blow while each portion of the records is written; the next when who was hit has seen all that was written. */
const play = async ({ events, drops, kills }: AuditStormOptions, scene: Scene): Promise<void> => {
  const { stack, projectors, writers, asProjector, onProgress } = scene;
  onProgress(`${WRITERS} writers, ${events} records …`);
  const blows = drops + kills + 1;
  let written = 0;
  for (let blow = 0; blow < blows; blow += 1) {
    const until = Math.round((events * (blow + 1)) / blows);
    const shares = writers.map((_, index) => Math.floor((until - written + index) / writers.length));
    written = until;
    const writing = Promise.all(writers.map((writer, index) => writer.write(shares[index] ?? 0)));
    const hit = projectors[blow % 2 === 0 ? 0 : 1];
    if (blow === Math.floor(blows / 2)) await stack.nats.restart();
    else if (isKill(blow, blows, kills)) await hit.killAndStart();
    else hit.front.cutConnections();
    await writing;
    const head = await headOf(asProjector, 'AUDIT');
    await waitFor(`the ${hit.name} at ${head} after blow ${blow}`, () => (hit.model.progress()?.position ?? 0) >= head, CALM_MS);
    if (blow % 10 === 9) onProgress(`${until} records, ${blow + 1} of ${blows} blows`);
  }
};

/** The kills lie evenly among the drops. */
const isKill = (blow: number, blows: number, kills: number): boolean =>
  Math.floor(((blow + 1) * kills) / blows) > Math.floor((blow * kills) / blows);

/** Messages that are no records, in both streams, and records after them, which they must not hold up. @returns How each must be named. */
const writeUnreadable = async (asProjector: Bus, writers: readonly RecordWriter[]): Promise<readonly string[]> => {
  const [namespaceId] = NAMESPACES;
  const audit = auditSubject({ namespaceId, outcome: 'denied', type: 'tool.invoked' });
  const [writer] = writers;
  const put = async (what: string, bus: Bus | undefined, subject: string, body: string): Promise<string> => {
    const stored = await bus?.publishStored(subject, Buffer.from(body), { timeoutMs: CALM_MS });
    if (stored?.ok !== true) throw new Error(`what cannot be read was not stored: ${stored?.error.kind ?? 'nobody writes'}`);
    return `${what} ${stored.value.sequence}`;
  };
  const unreadable = [
    await put('audit record', asProjector, audit, '{"version":"9"}'),
    await put('audit record', asProjector, audit, 'no JSON'),
    await put('ledger record', writer?.bus, ledgerSubject(namespaceId, 0), 'no JSON'),
  ];
  await Promise.all(writers.map((each) => each.write(1)));
  return unreadable;
};
