import { fileURLToPath } from 'node:url';
import type { Bus } from '@sharedos/bus';
import { namespaceSubject, principalSubject } from '@sharedos/contracts';
import { startProcess } from '@sharedos/testing';
import { Redis } from 'ioredis';
import { type BenchSystem, ALICE } from './bench-system.ts';

/** Sizes of the bodies of one real call, which the bare steps are made as large as. */
export interface CallBytes {
  readonly request: number;
  readonly reply: number;
  /** Of an `admitted` and of a `settled` record, on average. */
  readonly record: number;
}

/** The bare steps that a call is made of, on the same broker and the same Redis. Each does one. */
export interface Floors {
  /** Request and reply between two processes, without a header, a schema or JSON. */
  request(): Promise<unknown>;
  /** The same with the stock client's `request`. */
  stockRequest(): Promise<unknown>;
  /** Publish into a file stream and wait until it is stored. */
  publish(): Promise<unknown>;
  /** The same with the stock client's JetStream publish. */
  stockPublish(): Promise<unknown>;
  /** One Lua step with one write. */
  lua(): Promise<unknown>;
  stop(): Promise<void>;
}

const TIMEOUT_MS = 5_000;
/** A namespace that no service is asked about. */
const APART = 'bench-floor';
const LUA = "return redis.call('INCR', KEYS[1])";

/**
 * Both ends of the request are users that the generated permissions let ask each other, and the stream is one that nobody of the
 * system reads from in this namespace: the floors need no right, no stream and no setting that the system itself does not have.
 */
export const startFloors = async ({ stack, bus }: BenchSystem, bytes: CallBytes): Promise<Floors> => {
  const asked = namespaceSubject('execution.control', APART, 'echo');
  const stored = principalSubject('turn.event', APART, ALICE, 'floor');
  const request = Buffer.alloc(bytes.request, 'x');
  const record = Buffer.alloc(bytes.record, 'x');

  const { user, password, inboxPrefix } = stack.credentials.service('tool-executor');
  const echo = await startProcess({
    label: 'echo',
    command: process.execPath,
    args: [fileURLToPath(new URL('./echo.ts', import.meta.url)), stack.natsUrl, user, password, inboxPrefix, asked, String(bytes.reply)],
    cwd: process.cwd(),
    env: { PATH: process.env['PATH'] ?? '' },
  });
  await echo.ready(() => echo.output().includes('listening'), 20_000);

  const redis = new Redis(stack.redisUrl, { disableClientInfo: true });
  const sha = (await redis.script('LOAD', LUA)) as string;
  const jetstream = bus.nats.jetstream({ timeout: TIMEOUT_MS });

  return {
    request: async () => answered(await bus.replies.send(asked, request, undefined, TIMEOUT_MS)),
    stockRequest: () => bus.nats.request(asked, request, { timeout: TIMEOUT_MS }),
    publish: async () => answered(await publishBare(bus, stored, record)),
    stockPublish: () => jetstream.publish(stored, record),
    lua: () => redis.evalsha(sha, 1, 'bench:floor'),
    stop: async () => {
      redis.disconnect();
      await echo.stop();
    },
  };
};

const publishBare = (bus: Bus, subject: string, record: Uint8Array) => bus.publishStored(subject, record, { timeoutMs: TIMEOUT_MS });

/** A step that failed is no figure. */
const answered = (outcome: { readonly ok: boolean }): void => {
  if (!outcome.ok) throw new Error(`a bare step failed: ${JSON.stringify(outcome)}`);
};
