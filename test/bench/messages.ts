import { randomUUID } from 'node:crypto';
import { type Bus, connectBus, followStream, lastOnSubject, streamHead } from '@sharedos/bus';
import { type SharedOS, newTurn } from '@sharedos/client';
import { type Address, InboxMessage, type ServiceName, decodeOwnBody, principalSubject } from '@sharedos/contracts';
import { operationSubject } from '@sharedos/ledger';
import { startTestSystem } from '../support/test-system.ts';
import { type Authority, askAuthority } from './authority.ts';
import { ALICE, type BenchSystem, FILE, NAMESPACE, SCOUT } from './bench-system.ts';
import { type Floors, startFloors } from './floors.ts';
import { type Row, median, percentile, rowOf } from './rows.ts';
import { oneByOne } from './sampling.ts';

/** Who is asked: an agent that nobody registered, so that its inbox gets the request, and this process answers. */
const CLERK = { kind: 'agent', agentId: 'clerk' } as const satisfies Address;
const COMPLETED = Buffer.from('"tool.completed"');
/** Of a record of a send and a decision, about; the bare steps are made as large. */
const RECORD_BYTES = 900;
const TARGET = 1.3;
const READ_MS = 5_000;

const PLANS = {
  full: { runs: 5, budgetMs: 60_000, sampleMs: 600, requests: 200 },
  quick: { runs: 2, budgetMs: 8_000, sampleMs: 100, requests: 15 },
} as const;

type Run = Awaited<ReturnType<typeof measure>>;

/** A message sent, and a request of a turn with its reply, through the real system; and their floors in the same runs. */
export const benchMessages = async ({ quick, say }: { readonly quick: boolean; say(line: string): void }): Promise<readonly Row[]> => {
  const plan = quick ? PLANS.quick : PLANS.full;
  say('starting nats-server, redis-server and the four services …');
  const bench = await startMessageBench(say);
  const closers: (() => Promise<unknown>)[] = [() => bench.stop()];
  try {
    const authority = await askAuthority(bench, ALICE);
    closers.push(() => authority.close());
    const floors = await startFloors(bench, { ...(await authority.bytes()), record: RECORD_BYTES });
    closers.push(() => floors.stop());
    const clerk = await answering(bench);
    closers.push(() => clerk.stop());
    say('warming up …');
    await timesOfRequests(bench, plan.requests);
    await clerk.acknowledge();
    const runs: Run[] = [];
    const begun = performance.now();
    while (runs.length < plan.runs && (runs.length === 0 || performance.now() - begun < plan.budgetMs)) {
      say(`run ${runs.length + 1} of ${plan.runs} …`);
      runs.push(await measure(bench, authority, floors, plan));
      await clerk.acknowledge();
    }
    return rowsOf(runs);
  } finally {
    for (const close of closers.reverse()) await close();
  }
};

const measure = async (
  bench: BenchSystem,
  authority: Authority,
  floors: Floors,
  { sampleMs, requests }: (typeof PLANS)['full' | 'quick'],
) => {
  const p50 = async (work: () => Promise<unknown>): Promise<number> => median(await oneByOne(sampleMs, work));
  const alice = await bench.system.client(ALICE);
  const subject = operationSubject({ namespaceId: NAMESPACE, kind: 'message', requester: ALICE, id: await sendOne(alice) });
  const bare = {
    request: await p50(floors.request),
    publish: await p50(floors.publish),
    barrier: await p50(authority.barrier),
    read: await p50(() => lastOnSubject(bench.bus, 'LEDGER', subject, { timeoutMs: READ_MS })),
  };
  const send = await oneByOne(sampleMs, () => sendOne(alice));
  await empty(alice);
  const asked = await timesOfRequests(bench, requests);
  return { ...bare, send: median(send), send99: percentile(send, 99), asked: median(asked), asked99: percentile(asked, 99) };
};

/** So that the inbox does not fill. */
const empty = async (alice: SharedOS): Promise<void> => {
  for (;;) {
    const inbox = await alice.messages.inbox({ limit: 100 });
    if (!inbox.ok || inbox.value.length === 0) return;
    for (const { sequence } of inbox.value) await alice.messages.ack(sequence);
  }
};

const sendOne = async (alice: SharedOS): Promise<string> => {
  const id = randomUUID();
  const sent = await alice.messages.send({ id, receiver: ALICE, purpose: 'benchmark', payload: { text: 'hello' } });
  if (!sent.ok || sent.value.status !== 'accepted') throw new Error(`a message was not accepted: ${JSON.stringify(sent)}`);
  return id;
};

/** Microseconds from the end of one request of a turn, with its reply, to the end of the next, as the requester of the turn hears them. */
const timesOfRequests = async (bench: BenchSystem, count: number): Promise<number[]> => {
  const executionId = randomUUID();
  const heard: number[] = [];
  const listener = await bench.listen(ALICE);
  const subscribed = await listener.subscribe(principalSubject('turn.event', NAMESPACE, ALICE, executionId), ({ data }) => {
    if (Buffer.from(data.buffer, data.byteOffset, data.byteLength).includes(COMPLETED)) heard.push(performance.now());
  });
  if (!subscribed.ok) throw new Error(subscribed.error.reason);
  const options = { maxSteps: count + 1, timeoutMs: 120_000 };
  const turn = newTurn({ from: ALICE, agent: SCOUT, purpose: 'benchmark', executionId, options });
  const script = Array.from({ length: count }, () => ({
    tool: 'messages.request',
    arguments: { recipient: CLERK, payload: { text: 'hello' } },
  }));
  const submitted = await (await bench.system.client(ALICE)).turns.submit({ ...turn, state: { script, output: null } });
  const answer = submitted.ok ? await submitted.value.result : undefined;
  await subscribed.value.stop();
  await listener.close();
  if (answer?.ok !== true || answer.value.result.status !== 'succeeded')
    throw new Error(`a turn did not succeed: ${JSON.stringify(answer)}`);
  if (heard.length !== count) throw new Error(`${heard.length} of ${count} requests were heard of`);
  return heard.slice(1).map((at, index) => (at - (heard[index] as number)) * 1_000);
};

/** Clerk, who answers each request as soon as it is in its inbox: told by the stream, not by looking again and again. */
const answering = async (bench: MessageBench) => {
  const client = await bench.system.client(CLERK);
  const bus = await bench.asRouter();
  const head = await streamHead(bus, 'MESSAGES', { timeoutMs: READ_MS });
  if (!head.ok) throw new Error(head.error.reason);
  const waiting: number[] = [];
  const feed = followStream(bus, {
    stream: 'MESSAGES',
    filterSubject: principalSubject('inbox', NAMESPACE, CLERK),
    fromSequence: head.value + 1,
    onMessage: ({ data, sequence }) => {
      const request = decodeOwnBody(InboxMessage, data);
      if (!request.ok) return;
      waiting.push(sequence);
      const { id, sender, purpose, traceId } = request.value;
      void client.messages.send({ receiver: sender, replyTo: id, purpose, traceId, payload: { text: 'hello yourself' }, authority: ALICE });
    },
    onAlive: () => undefined,
    onDefect: (error) => {
      throw error;
    },
  });
  return {
    /** Between runs, and not while they are timed. */
    acknowledge: async () => {
      for (const sequence of waiting.splice(0)) await client.messages.ack(sequence);
    },
    stop: () => feed.stop(),
  };
};

const rowsOf = (runs: readonly Run[]): readonly Row[] => {
  const µs = { unit: 'µs' } as const;
  const each = (figure: (run: Run) => number): readonly number[] => runs.map(figure);
  // To the router and back; claimed, opened and decided, admitted, in the inbox, ended. A barrier is in opening.
  const send = each(({ request, publish, barrier }) => request + publish + (request + barrier) + request + 3 * publish);
  // The call is decided and admitted; half a request to the router; claimed, the registration read behind a barrier, in the inbox;
  // half a request to the recipient and half a one back; claimed, what is answered read record by record, opened and decided, admitted,
  // on record as the reply; half a request to the turn; settled.
  const asked = each(
    ({ request, publish, barrier, read }) =>
      request +
      publish +
      request / 2 +
      publish +
      (request + barrier) +
      publish +
      request +
      publish +
      4 * read +
      (request + barrier) +
      request +
      2 * publish +
      request / 2 +
      publish,
  );
  return [
    { name: 'floor: request', ...µs, values: each((run) => run.request) },
    { name: 'floor: publish with ack', params: { bytes: RECORD_BYTES }, ...µs, values: each((run) => run.publish) },
    { name: 'floor: barrier', ...µs, values: each((run) => run.barrier) },
    { name: 'floor: one record read', ...µs, values: each((run) => run.read) },
    { name: 'message sent, p50', ...µs, values: each((run) => run.send), floors: send },
    { name: 'message sent, p99', ...µs, values: each((run) => run.send99) },
    { name: 'request and reply, p50', ...µs, values: each((run) => run.asked), floors: asked, target: TARGET },
    { name: 'request and reply, p99', ...µs, values: each((run) => run.asked99) },
  ].map(rowOf);
};

interface MessageBench extends BenchSystem {
  asRouter(): Promise<Bus>;
}

const startMessageBench = async (say: (line: string) => void): Promise<MessageBench> => {
  const system = await startTestSystem({
    principals: [ALICE, CLERK].map((principal) => ({ namespaceId: NAMESPACE, principal })),
    env: (service) => (service === 'tool-executor' ? { SHAREDOS_TOOL_NAMESPACES: 'files,messages,sharedos' } : {}),
    onProgress: say,
  });
  const { stack } = system;
  const buses: Bus[] = [];
  const stop = async (): Promise<void> => {
    for (const bus of buses) await bus.close();
    await system.stop();
  };
  const connected = async ({ user, password, inboxPrefix }: { user: string; password: string; inboxPrefix: string }): Promise<Bus> => {
    const bus = await connectBus({ servers: stack.natsUrl, user, pass: password, inboxPrefix, name: 'bench' });
    buses.push(bus);
    return bus;
  };
  const asService = (name: ServiceName): Promise<Bus> => connected(stack.credentials.service(name));
  try {
    await system.files(ALICE, { [FILE.path.join('/')]: 'Buy milk' });
    await system.letAliceRunScout();
    await system.grant('stat', { path: ['bench'], actions: ['stat'] });
    const sendTo = (path: readonly string[]) => ({ namespace: 'sharedos.messaging', path, actions: ['send'], scope: 'exact' }) as const;
    await system.grant('scout-to-clerk', sendTo(['agent', 'clerk']));
    await system.grant('clerk-to-scout', sendTo(['agent', 'scout']), { to: CLERK });
    await system.grant('alice-to-alice', sendTo(['human', 'alice']), { to: ALICE });
    return {
      system,
      stack,
      bus: await asService('tool-executor'),
      authorizerBus: await asService('authorizer'),
      asRouter: () => asService('messaging-router'),
      listen: (principal) => connected(stack.credentials.principal(NAMESPACE, principal)),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
};
