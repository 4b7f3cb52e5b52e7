import { hash, randomBytes } from 'node:crypto';
import { type HeldUse, decodeToken, encodeToken } from '@sharedos/contracts';
import { Redis } from 'ioredis';
import { type CounterSession, type GrantCounter, LOST, SessionLost, TURN_OVER } from './counter-session.ts';
import { type RebuildOptions, type RebuiltUsageStore, rebuiltUsageStore } from './rebuilt-store.ts';
import { SCRIPTS, type ScriptName } from './redis-scripts.ts';
import { type BoundedGrant, type Budgets, HELD_MAX, type Reservation } from './usage-store.ts';

export interface RedisUsageOptions extends RebuildOptions {
  /** `redis://:password@host:port/db`. One server, without persistence and without eviction. */
  readonly url: string;
  /** How long one step, or a connection, may take before the counters count as gone. */
  readonly commandTimeoutMs?: number;
}

const COMMAND_TIMEOUT_MS = 500;

const PREFIX = 'sharedos.v1.uses';
const EPOCH_KEY = `${PREFIX}:epoch`;
const CANDIDATES_KEY = `${PREFIX}:candidates`;
const NUMBER_KEY = `${PREFIX}:number`;
const CONTROL_KEYS: ReadonlySet<string> = new Set([EPOCH_KEY, CANDIDATES_KEY, NUMBER_KEY]);

/** The three keys of one grant in one epoch. */
const keysOf = (epoch: string, grant: Omit<BoundedGrant, 'max'>) => {
  const name = `${PREFIX}:${epoch}:grant:${encodeToken(grant.namespaceId)}.${encodeToken(grant.grantId)}`;
  return { highest: `${name}:highest`, free: `${name}:free`, operations: `${name}:operations` };
};

/** The set of what one turn holds, whatever its grants. */
const turnKey = (epoch: string, namespaceId: string, turn: string): string =>
  `${PREFIX}:${epoch}:turn:${encodeToken(namespaceId)}.${encodeToken(turn)}`;

/** What a turn holds of one grant, after the ordinal and a space. No part of it has a space. */
const heldOf = (grantId: string, operation: string): string => `${encodeToken(grantId)} ${encodeToken(fieldOf(operation))}`;

const readHeld = (text: string): HeldUse => {
  const [ordinal, grant, operation] = text.split(' ').map((part, at) => (at === 0 ? part : decodeToken(part)));
  if (typeof grant !== 'object' || typeof operation !== 'object' || !grant.ok || !operation.ok)
    throw new SessionLost('Redis holds a use that nobody here wrote', true);
  return { ordinal: Number(ordinal), grantId: grant.value, operation: JSON.parse(operation.value) as string };
};

/** An operation as a hash field. JSON escapes a lone surrogate, which UTF-8 would write like any other. */
const fieldOf = (operation: string): string => JSON.stringify(operation);

const FILL_VALUES = 500;
const SWEEP_KEYS = 500;

const SHA_OF = Object.fromEntries(Object.entries(SCRIPTS).map(([name, text]) => [name, hash('sha1', text, 'hex')])) as Record<
  ScriptName,
  string
>;

/** A usage store over one Redis server, which may lose its memory at any time. @see docs/adr/0005-uses-are-claims.md */
export const redisUsageStore = (options: RedisUsageOptions): RebuiltUsageStore =>
  rebuiltUsageStore(() => connectRedis(options.url, options.commandTimeoutMs ?? COMMAND_TIMEOUT_MS), options);

/**
 * One connection, never renewed: after any error it is thrown away, so no command can be sent twice or wait in a queue for a
 * server that came back with another memory.
 */
const connectRedis = async (url: string, commandTimeoutMs: number): Promise<CounterSession> => {
  const redis = new Redis(url, {
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    connectTimeout: commandTimeoutMs,
    commandTimeout: commandTimeoutMs,
    disableClientInfo: true,
  });
  let lost: SessionLost | undefined;
  let listener: ((lost: SessionLost) => void) | undefined;
  const end = (reason: SessionLost): void => {
    if (lost !== undefined) return;
    lost = reason;
    redis.disconnect();
    listener?.(reason);
  };
  redis.on('error', (error: Error) => end(lostBecause(error)));
  redis.on('close', () => end(new SessionLost('the connection to Redis ended')));

  const attempt = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work;
    } catch (error) {
      const reason = lost ?? lostBecause(error);
      end(reason);
      throw reason;
    }
  };

  const run = async (script: ScriptName, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> => {
    if (lost !== undefined) throw lost;
    return attempt(redis.evalsha(SHA_OF[script], keys.length, ...keys, ...args));
  };

  await attempt(withDeadline(openConnection(redis), commandTimeoutMs * 2));

  return {
    epoch: async () => {
      const [epoch, policy] = (await run('epoch', [EPOCH_KEY], [])) as [string, string];
      if (policy !== 'noeviction') throw new SessionLost(`Redis may evict counters (maxmemory-policy ${policy}); set noeviction`);
      return epoch === '' ? undefined : epoch;
    },
    revoke: async (epoch) => {
      await run('revoke', [EPOCH_KEY], [epoch]);
    },
    beginRebuild: async () => {
      const candidate = await run('begin', [EPOCH_KEY, CANDIDATES_KEY, NUMBER_KEY], [randomBytes(8).toString('hex')]);
      return candidate === '' ? undefined : (candidate as string);
    },
    fill: async (candidate: string, counter: GrantCounter) => {
      const { highest, free, operations } = keysOf(candidate, counter);
      const keys = [EPOCH_KEY, CANDIDATES_KEY, highest, free, operations];
      const rounds = Math.ceil(Math.max(counter.free.length, counter.operations.length) / FILL_VALUES);
      for (let round = 0; round < rounds; round += 1) {
        const [from, to] = [round * FILL_VALUES, (round + 1) * FILL_VALUES];
        const holes = counter.free.slice(from, to);
        const operated = counter.operations.slice(from, to);
        const spent = operated.flatMap(([operation, ordinal]) => [fieldOf(operation), ordinal]);
        const turns = operated.flatMap(([operation, ordinal, turn]) =>
          turn === undefined
            ? []
            : [{ key: turnKey(candidate, counter.namespaceId, turn), holds: `${ordinal} ${heldOf(counter.grantId, operation)}` }],
        );
        const filled = await run(
          'fill',
          [...keys, ...turns.map(({ key }) => key)],
          [candidate, counter.highest, holes.length, ...holes, turns.length, ...turns.map(({ holds }) => holds), ...spent],
        );
        if (filled !== 1) return false;
      }
      return true;
    },
    install: async (candidate) => {
      const epoch = await run('install', [EPOCH_KEY, CANDIDATES_KEY], [candidate]);
      return epoch === '' ? undefined : (epoch as string);
    },
    sweep: async (epoch) => {
      let cursor = '0';
      do {
        const [next, keys] = await attempt(redis.scan(cursor, 'MATCH', `${PREFIX}:*`, 'COUNT', SWEEP_KEYS));
        const old = keys.filter((key) => !CONTROL_KEYS.has(key) && !key.startsWith(`${PREFIX}:${epoch}:`));
        if (old.length > 0 && (await run('sweep', [EPOCH_KEY, ...old], [epoch])) !== 1) return;
        cursor = next;
      } while (cursor !== '0');
    },
    take: async (epoch: string, budgets: Budgets, { operation, turn }: Reservation) => {
      const keys = budgets.flatMap((grant) => Object.values(keysOf(epoch, grant)));
      const each = budgets.flatMap(({ grantId, max }) => [max, heldOf(grantId, operation)]);
      const [first, ...more] = (await run(
        'take',
        [EPOCH_KEY, turnKey(epoch, budgets[0].namespaceId, turn), ...keys],
        [epoch, fieldOf(operation), ...each],
      )) as [number, ...number[]];
      if (first > 0) return [first, ...more];
      if (first === 0) return TURN_OVER;
      return first === -1 ? LOST : { exhausted: -first - 2 };
    },
    count: async (epoch: string, budgets: Budgets) => {
      const keys = budgets.map((grant) => keysOf(epoch, grant)).flatMap(({ highest, free }) => [highest, free]);
      const counts = (await run('count', [EPOCH_KEY, ...keys], [epoch])) as number[];
      return counts[0] === -1 ? LOST : counts;
    },
    held: async (epoch: string, namespaceId: string, turn: string) => {
      const [word, ...held] = (await run('held', [EPOCH_KEY, turnKey(epoch, namespaceId, turn)], [epoch, HELD_MAX])) as string[];
      return word === 'held' ? held.map(readHeld) : LOST;
    },
    release: async (epoch: string, grant, turn: string, { ordinal, operation }: HeldUse) => {
      const { highest, free, operations } = keysOf(epoch, grant);
      const released = await run(
        'release',
        [EPOCH_KEY, turnKey(epoch, grant.namespaceId, turn), highest, free, operations],
        [epoch, fieldOf(operation), ordinal, `${ordinal} ${heldOf(grant.grantId, operation)}`],
      );
      return released === -1 ? LOST : undefined;
    },
    onLost: (told) => {
      listener = told;
      if (lost !== undefined) told(lost);
    },
    close: () => {
      listener = undefined;
      end(new SessionLost('closed'));
    },
  };
};

/** Scripts are loaded here and nowhere else: a server that does not know them later is one whose memory is in doubt. */
const openConnection = async (redis: Redis): Promise<void> => {
  await redis.connect();
  await Promise.all(Object.values(SCRIPTS).map((text) => redis.script('LOAD', text)));
};

const lostBecause = (error: unknown): SessionLost => {
  const message = error instanceof Error ? error.message : String(error);
  return new SessionLost(`Redis: ${message}`, message.startsWith('NOSCRIPT'));
};

const withDeadline = async <T>(work: Promise<T>, timeoutMs: number): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error('no connection in time')), timeoutMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
};
