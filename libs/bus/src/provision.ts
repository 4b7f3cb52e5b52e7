import { isDeepStrictEqual } from 'node:util';
import { type Result, type StreamName, type Unavailable, err, ok, unavailable } from '@sharedos/contracts';
import {
  type ConsumerInfo,
  type JetStreamManager,
  type NatsConnection,
  NatsError,
  type StreamConfig,
  type StreamInfo,
  connect,
} from 'nats';
import { OLDEST_WITH_COPIES, isVersionBefore } from './broker-version.ts';
import { PROVISIONER, serviceInboxPrefix } from './permissions.ts';
import { type SignIn, signIn } from './sign-in.ts';
import { type ConsumerSettings, type StreamOptions, type StreamSettings, consumerSettings, streamSettings } from './streams.ts';

/**
 * The broker holds something else than we need. `contradiction`: a setting stands there that cannot be changed in place, or that
 * the server did not take over. `refused`: the broker itself said no; `why` is its text.
 */
export type ProvisionRefusal =
  | { readonly kind: 'contradiction'; readonly of: string; readonly setting: string; readonly found: unknown; readonly wanted: unknown }
  | { readonly kind: 'refused'; readonly of: string; readonly why: string }
  | Unavailable;

const REQUEST_TIMEOUT_MS = 5_000;
const FORMER = { stream: 'TURNS', name: 'tool-executor' };

/**
 * Creates the streams and durable consumers, or brings existing ones to the present settings. May be run again at any time and
 * by several at once; it deletes nothing.
 *
 * @param connection Where to connect, as the provisioning user.
 */
export const provision = async (connection: SignIn, options: StreamOptions = {}): Promise<Result<void, ProvisionRefusal>> => {
  let nats: NatsConnection;
  try {
    nats = await connect({
      timeout: REQUEST_TIMEOUT_MS,
      reconnect: false,
      ...signIn(connection),
      inboxPrefix: serviceInboxPrefix(PROVISIONER),
    });
  } catch (error) {
    return unavailable(`no connection to the broker as the provisioning user: ${textOf(error)}`);
  }
  try {
    const version = nats.info?.version ?? '';
    const { replicas = 1, oldestWithCopies = OLDEST_WITH_COPIES } = options;
    if (replicas > 1 && isVersionBefore(version, oldestWithCopies))
      return err({
        kind: 'refused',
        of: 'copies of streams',
        why: `nats-server ${version} may lose them: use ${oldestWithCopies} or later`,
      });
    const manager = await nats.jetstreamManager({ timeout: REQUEST_TIMEOUT_MS });
    for (const settings of Object.values(streamSettings(options))) {
      const made = await bringStream(manager, settings);
      if (!made.ok) return made;
    }
    const former = await noFormerConsumer(manager);
    if (!former.ok) return former;
    for (const { stream, settings } of consumerSettings()) {
      const made = await bringConsumer(manager, stream, settings);
      if (!made.ok) return made;
    }
    return ok(undefined);
  } catch (error) {
    return unavailable(`JetStream did not answer: ${textOf(error)}`);
  } finally {
    await nats.close();
  }
};

/**
 * Whether streams are as this version needs them; a service asks at its start, before it trusts one. Size and number of copies
 * are the operator's to choose and are not compared.
 */
export const checkStreams = async (
  nats: NatsConnection,
  streams: readonly StreamName[] = Object.keys(streamSettings()) as StreamName[],
): Promise<Result<void, ProvisionRefusal>> => {
  const wanted = streamSettings();
  try {
    const manager = await nats.jetstreamManager({ timeout: REQUEST_TIMEOUT_MS, checkAPI: false });
    for (const name of streams) {
      const found = await found404(name, () => manager.streams.info(name));
      if (!found.ok) return found;
      if (found.value === undefined)
        return err({ kind: 'contradiction', of: `stream ${name}`, setting: 'existence', found: false, wanted: true });
      const { storage: _storage, max_bytes: _bytes, num_replicas: _replicas, ...compared } = wanted[name];
      const same = sameSettings(`stream ${name}`, found.value.config, compared);
      if (!same.ok) return same;
    }
    return ok(undefined);
  } catch (error) {
    return unavailable(`JetStream did not answer: ${textOf(error)}`);
  }
};

const bringStream = async (manager: JetStreamManager, settings: StreamSettings): Promise<Result<void, ProvisionRefusal>> => {
  const of = `stream ${settings.name}`;
  const found = await found404(of, () => manager.streams.info(settings.name));
  if (!found.ok) return found;
  if (found.value !== undefined) {
    const contradiction = unchangeable(of, found.value, settings);
    if (!contradiction.ok) return contradiction;
  }
  const wanted =
    found.value === undefined ? settings : { ...settings, max_bytes: neverLess(found.value.config.max_bytes, settings.max_bytes) };
  const made = await refusedOr<StreamInfo>(of, () =>
    found.value === undefined ? manager.streams.add(wanted) : manager.streams.update(settings.name, wanted),
  );
  // Servers ignore settings they do not know, silently.
  return made.ok ? sameSettings(of, made.value.config, wanted) : made;
};

/**
 * The room of a stream only grows here. A server that is told a smaller bound deletes the oldest records at once, whatever the
 * stream does with new ones: a claim of the ledger would be gone, and a spent use be spent again. Absent and -1 are unbounded.
 */
const neverLess = (found: number | undefined, wanted: number | undefined): number => {
  const bounds = [found, wanted].map((bound) => (bound === undefined || bound < 0 ? Infinity : bound));
  const larger = Math.max(...bounds);
  return larger === Infinity ? -1 : larger;
};

const bringConsumer = async (
  manager: JetStreamManager,
  stream: StreamName,
  settings: ConsumerSettings,
): Promise<Result<void, ProvisionRefusal>> => {
  const of = `consumer ${settings.durable_name} of ${stream}`;
  const made = await refusedOr<ConsumerInfo>(of, () => manager.consumers.add(stream, settings));
  return made.ok ? sameSettings(of, made.value.config, settings) : made;
};

/**
 * One consumer once worked off all requests. It overlaps those of the namespaces, which the broker then does not let anybody make.
 * Its operator removes it, once no executor of that time runs: what is queued stays.
 */
const noFormerConsumer = async (manager: JetStreamManager): Promise<Result<void, ProvisionRefusal>> => {
  const of = `consumer ${FORMER.name} of ${FORMER.stream}`;
  const found = await found404(of, () => manager.consumers.info(FORMER.stream, FORMER.name));
  if (!found.ok) return found;
  return found.value === undefined ? ok(undefined) : err({ kind: 'contradiction', of, setting: 'existence', found: true, wanted: false });
};

const unchangeable = (of: string, { config }: StreamInfo, wanted: StreamSettings): Result<void, ProvisionRefusal> => {
  const same = sameSettings(of, config, { retention: wanted.retention, storage: wanted.storage });
  if (!same.ok) return same;
  // Once denied, deleting stays denied. And a stream that copies or is sealed is not ours at all.
  const never: readonly (keyof StreamConfig)[] = [
    'sealed',
    'mirror',
    'sources',
    ...(['deny_delete', 'deny_purge'] as const).filter((setting) => wanted[setting] !== true),
  ];
  for (const setting of never) {
    if (isSet(config[setting]))
      return err({ kind: 'contradiction', of, setting, found: config[setting], wanted: wanted[setting] ?? false });
  }
  return ok(undefined);
};

const sameSettings = (of: string, found: object, wanted: object): Result<void, ProvisionRefusal> => {
  const standing = found as Readonly<Record<string, unknown>>;
  for (const [setting, value] of Object.entries(wanted)) {
    // The server leaves out what is false, and the client adds what is undefined.
    if (!isDeepStrictEqual(standing[setting] ?? false, value ?? false))
      return err({ kind: 'contradiction', of, setting, found: standing[setting], wanted: value });
  }
  return ok(undefined);
};

const isSet = (value: unknown): boolean => value !== undefined && value !== false && value !== null;

/** `undefined` for what does not exist; any other answer of the API that is an error is a refusal. */
const found404 = async <T>(of: string, ask: () => Promise<T>): Promise<Result<T | undefined, ProvisionRefusal>> => {
  try {
    return ok(await ask());
  } catch (error) {
    if (error instanceof NatsError && error.api_error?.code === 404) return ok(undefined);
    return refusalOf(of, error);
  }
};

const refusedOr = async <T>(of: string, ask: () => Promise<T>): Promise<Result<T, ProvisionRefusal>> => {
  try {
    return ok(await ask());
  } catch (error) {
    return refusalOf(of, error);
  }
};

const refusalOf = (of: string, error: unknown): Result<never, ProvisionRefusal> => {
  if (error instanceof NatsError && error.api_error !== undefined) return err({ kind: 'refused', of, why: error.api_error.description });
  throw error;
};

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** One line for an operator. */
export const describeProvisionRefusal = (refusal: ProvisionRefusal): string => {
  switch (refusal.kind) {
    case 'contradiction':
      return `${refusal.of}: ${refusal.setting} is ${JSON.stringify(refusal.found)} and must be ${JSON.stringify(refusal.wanted)}`;
    case 'refused':
      return `${refusal.of}: the broker refused: ${refusal.why}`;
    case 'unavailable':
      return refusal.reason;
  }
};
