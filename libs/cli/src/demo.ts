import { readdir } from 'node:fs/promises';
import { type SharedOS, type TurnAnswer, newTurn } from '@sharedos/client';
import { type AuditEvent, type CapabilityConstraints, type Json, SERVICE_NAMES } from '@sharedos/contracts';
import { type LocalStack, type ReceivedSpan, type SpanReceiver, spanTree, startLocalStack, startSpanReceiver } from '@sharedos/testing';
import { startTelemetry, withSpan } from '@sharedos/telemetry';
import { auditLine } from './audit-line.ts';
import { ALICE, AUDITOR, DEMO_NAMESPACE, SCOUT, demoPrincipals, filesFolder, writeSampleFiles } from './demo-world.ts';
import { connectTo } from './start-system.ts';
import { printable } from './table.ts';

/**
 * `npm run demo`: the whole system on this machine, two real turns over a real folder, and everything that can be seen of them.
 * It exits with 0 only if each call was allowed or refused as expected, and leaves nothing behind.
 */

const USAGE = `usage: npm run demo [-- --json]

  --json   progress on standard error, and on standard output one JSON document of what was allowed, refused and recorded
           (npm itself prints there too, unless it is told --silent)
  --help   this text

It exits with 0 only if each call was allowed or refused as expected.
`;
const flags = process.argv.slice(2);
const json = flags.includes('--json');
/** With `--json` people still see progress, on standard error, and standard output holds the one line alone. */
const say = (line = ''): void => void (json ? process.stderr : process.stdout).write(`${line}\n`);

interface ExpectedCall {
  readonly tool: string;
  readonly arguments: Readonly<Record<string, Json>>;
  readonly because: string;
  readonly code?: string;
}

interface ExpectedTurn {
  readonly title: string;
  readonly purpose: string;
  readonly executionId: string;
  readonly calls: readonly ExpectedCall[];
}

const plan = ['notes', 'plan.md'];
const TURNS: readonly ExpectedTurn[] = [
  {
    title: 'scout looks around in alice’s notes',
    purpose: 'weekly-review',
    executionId: 'demo-1',
    calls: [
      { tool: 'files.list', arguments: { path: ['notes'] }, because: 'the grant covers the folder itself' },
      { tool: 'files.read', arguments: { path: plan }, because: 'the grant covers everything below notes' },
      { tool: 'files.search', arguments: { path: ['notes'], query: 'bob' }, because: 'search is among the granted actions' },
      { tool: 'files.read', arguments: { path: ['private', 'diary.md'] }, because: 'no grant covers private', code: 'no_matching_grant' },
      {
        tool: 'files.create',
        arguments: { path: ['notes', 'new.md'], content: 'mine' },
        because: 'only the inbox may be written',
        code: 'tool_unavailable',
      },
      { tool: 'files.append', arguments: { path: ['notes', 'log.md'], content: 'Read the plan.\n' }, because: 'one append was granted' },
      {
        tool: 'files.append',
        arguments: { path: ['notes', 'log.md'], content: 'Again.\n' },
        because: 'and it is spent',
        code: 'tool_unavailable',
      },
    ],
  },
  {
    title: 'the same agent, for another purpose',
    purpose: 'advertising',
    executionId: 'demo-2',
    calls: [
      { tool: 'files.read', arguments: { path: plan }, because: 'the grants serve the weekly review alone', code: 'tool_unavailable' },
    ],
  },
];

const demo = async (): Promise<boolean> => {
  const receiver = await startSpanReceiver();
  process.env['OTEL_EXPORTER_OTLP_ENDPOINT'] = receiver.url;
  process.env['OTEL_BSP_SCHEDULE_DELAY'] = '200';
  const telemetry = await startTelemetry({ service: 'demo', instance: 'demo', version: '0.1.0' });
  let stack: LocalStack | undefined;
  const clients: SharedOS[] = [];
  try {
    stack = await start(receiver);
    const [alice, auditor] = await Promise.all([connectTo(stack, DEMO_NAMESPACE, ALICE), connectTo(stack, DEMO_NAMESPACE, AUDITOR)]);
    clients.push(alice, auditor);
    const records: AuditEvent[] = [];
    const tail = await auditor.audit.tail({
      onRecord: (event) => {
        records.push(event);
        say(`      audit  ${auditLine(event)}`);
      },
      onGap: ({ natsSubject }) => say(`      audit  (a record on ${natsSubject} was missed)`),
    });
    if (!tail.ok) throw new Error('the auditor could not follow the audit records');

    await issueGrants(alice);
    const turns: TurnAnswer[] = [];
    const traces: string[] = [];
    for (const turn of TURNS) {
      await withSpan(`demo ${turn.executionId}`, {}, async (span) => {
        traces.push(span.spanContext().traceId);
        turns.push(await runTurn(alice, turn));
      });
    }
    const [traceId = ''] = traces;
    await until(() => records.filter(({ type }) => type === 'turn.ended').length === TURNS.length);
    const asExpected = turns.every((answer, index) => matches(answer, TURNS[index] as ExpectedTurn));

    await telemetry.shutdown();
    const spans = await receiver.waitFor((seen) => isWhole(seen.filter((span) => span.traceId === traceId)), 15_000);
    const ours = spans.filter((span) => span.traceId === traceId);
    say();
    say('The first turn as one trace through all services:');
    say(spanTree(ours, traceId, { linesMax: 100 }));
    say();
    say('To look further: `npx sharedos up` keeps all of this running and prints commands to paste.');
    say(asExpected ? 'Everything went as expected.' : 'Something did NOT go as expected.');

    if (json) process.stdout.write(`${JSON.stringify(summary(turns, records, traceId, ours))}\n`);
    return asExpected;
  } finally {
    for (const client of clients) await client.close();
    await stack?.stop();
    await telemetry.shutdown();
    await receiver.stop();
  }
};

/** Services that take part in a turn without messages. */
const SERVICES_TRACED = SERVICE_NAMES.filter((name) => name !== 'messaging-router');

/** Whether the last span of each service has arrived: parents end after their children. */
const isWhole = (spans: readonly ReceivedSpan[]): boolean => {
  const known = new Set(spans.map(({ spanId }) => spanId));
  const connected = spans.filter(({ parentSpanId }) => parentSpanId === undefined || known.has(parentSpanId)).length === spans.length;
  return connected && SERVICES_TRACED.every((name) => spans.some(({ service }) => service === name));
};

const start = async (receiver: SpanReceiver): Promise<LocalStack> => {
  say('Starting the local stack: nats-server, redis-server and four services, each a process of its own.');
  const stack = await startLocalStack({
    principals: demoPrincipals(DEMO_NAMESPACE),
    roots: { [DEMO_NAMESPACE]: [ALICE] },
    onProgress: (line) => say(`  ${line}`),
  });
  try {
    await writeSampleFiles(stack.filesRoot, DEMO_NAMESPACE);
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_BSP_SCHEDULE_DELAY: '200' };
    await Promise.all(
      SERVICE_NAMES.map(async (name) => {
        await stack.startService(name, { env });
        say(`  ${name} is ready`);
      }),
    );
    const folder = filesFolder(stack.filesRoot, DEMO_NAMESPACE, ALICE);
    say(`  alice’s files are in ${folder}: ${(await readdir(folder)).join(', ')}`);
    return stack;
  } catch (error) {
    await stack.stop();
    throw error;
  }
};

const GRANTS: readonly {
  id: string;
  says: string;
  namespace: string;
  path: string[];
  actions: string[];
  scope: 'exact' | 'descendants';
  constraints?: CapabilityConstraints;
}[] = [
  {
    id: 'run-scout',
    says: 'scout may be run',
    namespace: 'sharedos.execution',
    path: ['agent', 'scout'],
    actions: ['invoke'],
    scope: 'exact',
  },
  {
    id: 'notes',
    says: 'scout may list, read and search notes, for the weekly review',
    namespace: 'files',
    path: ['notes'],
    actions: ['list', 'read', 'search'],
    scope: 'descendants',
    constraints: { purposes: ['weekly-review'] },
  },
  {
    id: 'log-once',
    says: 'scout may append to notes/log.md, once',
    namespace: 'files',
    path: ['notes', 'log.md'],
    actions: ['append'],
    scope: 'exact',
    constraints: { purposes: ['weekly-review'], maxUses: 1 },
  },
];

const issueGrants = async (alice: SharedOS): Promise<void> => {
  say();
  say('Alice issues grants to the agent scout. What no grant covers is refused.');
  for (const { id, says, namespace, path, actions, scope, constraints } of GRANTS) {
    const capabilities = [{ resource: { namespace, path }, actions, scope }];
    const issued = await alice.grants.issue({ id, subject: SCOUT, capabilities, ...(constraints === undefined ? {} : { constraints }) });
    if (!issued.ok) throw new Error(`the grant ${id} was not issued: ${JSON.stringify(issued.error)}`);
    say(`  ${id}: ${says}`);
  }
};

const runTurn = async (alice: SharedOS, { title, purpose, executionId, calls }: ExpectedTurn): Promise<TurnAnswer> => {
  say();
  say(`A turn, published to NATS as alice: ${title} (purpose ${purpose})`);
  const script = calls.map(({ tool, arguments: given }) => ({ tool, arguments: given }));
  const submitted = await alice.turns.submit(newTurn({ from: ALICE, agent: SCOUT, purpose, executionId, calls: script }));
  if (!submitted.ok) throw new Error(`the turn was not queued: ${JSON.stringify(submitted.error)}`);
  const answer = await submitted.value.result;
  if (!answer.ok) throw new Error(`the turn was not answered: ${JSON.stringify(answer.error)}`);
  say(`  the turn ${answer.value.result.status}`);
  for (const [index, call] of callsOf(answer.value).entries()) {
    const expected = calls[index];
    const path = (expected?.arguments['path'] as readonly string[] | undefined)?.join('/') ?? '';
    const verdict = call.status === 'succeeded' ? '✓ allowed' : `✗ refused  ${call.code ?? call.status}`;
    say(`  ${`${call.tool} ${printable(path)}`.padEnd(32)} ${verdict.padEnd(30)} ${expected?.because ?? ''}`);
  }
  return answer.value;
};

interface CallSummary {
  readonly tool: string;
  readonly status: string;
  readonly code?: string;
}

const callsOf = ({ result }: TurnAnswer): readonly CallSummary[] =>
  result.status === 'succeeded' ? (result.output as unknown as { readonly calls: readonly CallSummary[] }).calls : [];

const matches = (answer: TurnAnswer, { calls }: ExpectedTurn): boolean => {
  const made = callsOf(answer);
  return (
    made.length === calls.length &&
    calls.every(({ code }, index) => made[index]?.code === code && (code !== undefined || made[index]?.status === 'succeeded'))
  );
};

const summary = (
  turns: readonly TurnAnswer[],
  records: readonly AuditEvent[],
  traceId: string,
  spans: readonly { readonly service: string }[],
) => ({
  turns: turns.map((answer) => ({
    executionId: answer.result.executionId,
    status: answer.result.status,
    calls: callsOf(answer).map(({ tool, status, code }) => ({ tool, status, ...(code === undefined ? {} : { code }) })),
  })),
  audit: { count: records.length, byType: countsByType(records) },
  trace: { traceId, services: [...new Set(spans.map(({ service }) => service))].sort(), spans: spans.length },
});

const countsByType = (records: readonly AuditEvent[]): Readonly<Record<string, number>> =>
  Object.fromEntries([...Map.groupBy(records, ({ type }) => type)].map(([type, found]) => [type, found.length]));

const until = async (condition: () => boolean): Promise<void> => {
  const deadline = performance.now() + 15_000;
  while (!condition()) {
    if (performance.now() > deadline) throw new Error('the audit records of the turns did not arrive');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};

const run = async (): Promise<number> => {
  if (flags.includes('--help') || flags.includes('-h')) {
    process.stdout.write(USAGE);
    return 0;
  }
  const unknown = flags.find((flag) => flag !== '--json');
  if (unknown !== undefined) {
    process.stderr.write(`"${printable(unknown)}" is no option of the demo\n${USAGE}`);
    return 2;
  }
  try {
    return (await demo()) ? 0 : 1;
  } catch (error) {
    process.stderr.write(`The demo failed: ${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  }
};

process.exitCode = await run();
