import { randomBytes } from 'node:crypto';
import { chmod, mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  type BrokerPrincipal,
  OPERATOR,
  PROVISIONER,
  brokerAccounts,
  describeProvisionRefusal,
  principalUser,
  provision,
  renderNatsConfig,
  serviceInboxPrefix,
} from '@sharedos/bus';
import { type Address, type ServiceName, inboxPrefix } from '@sharedos/contracts';
import { findServers } from './find-servers.ts';
import { onFreePort } from './free-port.ts';
import { mcpSettingsIn } from './mcp-settings.ts';
import { startNats } from './nats-server.ts';
import { privateFolder } from './private-folder.ts';
import { startRedis } from './redis-server.ts';
import { type SealKey, sealKeyIn } from './seal-key.ts';
import type { ServerHandle } from './server-process.ts';
import { type ServiceProcess, startServiceProcess } from './service-process.ts';
import { type LogPlace, type StackLog, startStackLog } from './stack-log.ts';

export interface LocalStackOptions {
  /** Who may connect from outside. */
  readonly principals: readonly BrokerPrincipal[];
  /** Root principals of each namespace, whose grants over administration and audit count. */
  readonly roots?: Readonly<Record<string, readonly Address[]>>;
  readonly turnLeaseMs?: number;
  /** Kept when the stack stops; a fresh temporary folder, removed with the stack, when absent. */
  readonly dataDir?: string;
  /** The folder that the `files` tools work in; `<dataDir>/files` when absent. */
  readonly filesRoot?: string;
  /** What the log of authority runs on; what `SHAREDOS_EVENT_STORE` of this process says when absent, and JetStream without that. */
  readonly eventStore?: LogPlace;
  /** Called with one line for each step that takes a while. */
  readonly onProgress?: (line: string) => void;
}

/** What is needed to connect to NATS as one user. */
export interface StackCredentials {
  readonly user: string;
  readonly password: string;
  /** The only prefix under which this user may hear answers. */
  readonly inboxPrefix: string;
}

export interface StartServiceOptions {
  /** Name among the replicas of the service; `1`, `2`, … when absent. */
  readonly instance?: string;
  /** Added to, or put in place of, what the service is given. */
  readonly env?: Readonly<Record<string, string>>;
  /** Every line the service prints. */
  readonly onLine?: (line: string) => void;
}

export interface LocalStack {
  readonly natsUrl: string;
  /** With the password in it. */
  readonly redisUrl: string;
  readonly dataDir: string;
  readonly filesRoot: string;
  /** Whom the heads of the audit proof are to be believed of. */
  readonly sealKeys: readonly Pick<SealKey, 'keyId' | 'publicKey'>[];
  readonly credentials: {
    service(name: ServiceName): StackCredentials;
    /** @throws RangeError for a principal that the stack was not started with. */
    principal(namespaceId: string, principal: Address): StackCredentials;
    readonly provisioner: StackCredentials;
    readonly operator: StackCredentials;
  };
  /** Restarts with the same port and the same streams. */
  readonly nats: ServerHandle;
  /** Restarts with the same port and empty. */
  readonly redis: ServerHandle;
  /** The EventStoreDB of the log, when it runs on one, and what authorizers are told of it. */
  readonly eventStore?: StackLog;
  startService(name: ServiceName, options?: StartServiceOptions): Promise<ServiceProcess>;
  /** Services still running, in the order they were started. */
  services(): readonly ServiceProcess[];
  /** Stops services, then servers, and removes the temporary folder. May be called again. */
  stop(): Promise<void>;
}

const REPOSITORY = fileURLToPath(new URL('../../../', import.meta.url));

/**
 * Starts nats-server and redis-server as child processes, on free ports, with random passwords and a private folder, and makes
 * the streams. Nothing of it outlives this process, however this process ends.
 */
export const startLocalStack = async (options: LocalStackOptions): Promise<LocalStack> => {
  const progress = options.onProgress ?? (() => undefined);
  const programs = await findServers({ onProgress: progress });
  const closers: (() => Promise<unknown>)[] = [];
  const temporaryFolder = async (): Promise<string> => {
    const { path, remove } = await privateFolder();
    closers.push(remove);
    return path;
  };
  const dataDir = await (options.dataDir === undefined ? temporaryFolder() : keptFolder(options.dataDir));
  let stopped: Promise<void> | undefined;
  // Newest first: whoever depends on a thing goes before it. What cannot be stopped must not keep the rest running.
  const stop = (): Promise<void> =>
    (stopped ??= (async () => {
      const failures: unknown[] = [];
      for (const close of closers.reverse()) await close().catch((error: unknown) => failures.push(error));
      if (failures.length > 0) throw failures[0];
    })());

  try {
    const passwords = new Map<string, string>();
    const passwordOf = (user: string): string => {
      const known = passwords.get(user) ?? secret();
      passwords.set(user, known);
      return known;
    };
    const accounts = brokerAccounts(options.principals, (user) =>
      passwordOf(typeof user === 'string' ? user : principalUser(user.namespaceId, user.principal)),
    );
    const redisPassword = secret();
    const tokenSecret = secret();
    const sealKey = await sealKeyIn(dataDir);
    const mcpSettings = await mcpSettingsIn(dataDir);

    progress('starting nats-server …');
    const [nats, natsPort] = await onFreePort((port) =>
      startNats(programs.nats, dataDir, port, (listener) => renderNatsConfig(listener, accounts)),
    );
    closers.push(nats.stop);
    progress('starting redis-server …');
    const [redis, redisPort] = await onFreePort((port) => startRedis(programs.redis, dataDir, port, redisPassword));
    closers.push(redis.stop);

    const stackLog = await startStackLog(options.eventStore, dataDir, options.dataDir !== undefined, progress);
    if (stackLog !== undefined) closers.push(stackLog.server.end);

    const natsUrl = `nats://127.0.0.1:${natsPort}`;
    const redisUrl = `redis://:${redisPassword}@127.0.0.1:${redisPort}`;
    const provisioned = await provision({ servers: natsUrl, user: PROVISIONER, pass: passwordOf(PROVISIONER) });
    if (!provisioned.ok) throw new Error(describeProvisionRefusal(provisioned.error));

    const filesRoot = options.filesRoot ?? join(dataDir, 'files');
    await mkdir(filesRoot, { recursive: true, mode: 0o700 });

    const services: ServiceProcess[] = [];
    const counts = new Map<ServiceName, number>();
    closers.push(() => Promise.all(services.filter((service) => service.running()).map((service) => service.stop())));

    return {
      natsUrl,
      redisUrl,
      dataDir,
      filesRoot,
      sealKeys: [{ keyId: sealKey.keyId, publicKey: sealKey.publicKey }],
      credentials: {
        service: (name) => ({ user: name, password: passwordOf(name), inboxPrefix: serviceInboxPrefix(name) }),
        principal: (namespaceId, principal) => {
          const user = principalUser(namespaceId, principal);
          const password = passwords.get(user);
          if (password === undefined) throw new RangeError(`the stack was started without the principal ${user}`);
          return { user, password, inboxPrefix: inboxPrefix(namespaceId, principal) };
        },
        provisioner: { user: PROVISIONER, password: passwordOf(PROVISIONER), inboxPrefix: serviceInboxPrefix(PROVISIONER) },
        operator: { user: OPERATOR, password: passwordOf(OPERATOR), inboxPrefix: serviceInboxPrefix(OPERATOR) },
      },
      nats,
      redis,
      ...(stackLog === undefined ? {} : { eventStore: stackLog }),
      startService: async (name, { instance, env, onLine } = {}) => {
        if (stopped !== undefined) throw new Error('the stack has been stopped');
        const count = (counts.get(name) ?? 0) + 1;
        counts.set(name, count);
        const service = await startServiceProcess({
          name,
          instance: instance ?? String(count),
          main: join(REPOSITORY, 'services', name, 'src/main.ts'),
          cwd: REPOSITORY,
          env: {
            ...inherited(),
            SHAREDOS_NATS_URL: natsUrl,
            SHAREDOS_NATS_USER: name,
            SHAREDOS_NATS_PASSWORD: passwordOf(name),
            SHAREDOS_INSTANCE: instance ?? String(count),
            ...(options.turnLeaseMs === undefined ? {} : { SHAREDOS_TURN_LEASE_MS: String(options.turnLeaseMs) }),
            ...serviceSettings(name, { redisUrl, tokenSecret, sealKey, filesRoot, mcpSettings, roots: options.roots ?? {} }),
            ...(name === 'authorizer' ? stackLog?.settings : {}),
            ...env,
          },
          ...(onLine === undefined ? {} : { onLine }),
        });
        services.push(service);
        // Stopped meanwhile: nobody else will end this one.
        if (stopped !== undefined) await service.stop();
        return service;
      },
      services: () => services.filter((service) => service.running()),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
};

/** What each service needs beyond the broker; a secret goes only to the one that uses it. */
const serviceSettings = (
  name: ServiceName,
  {
    redisUrl,
    tokenSecret,
    sealKey,
    filesRoot,
    mcpSettings,
    roots,
  }: {
    readonly redisUrl: string;
    readonly tokenSecret: string;
    readonly sealKey: SealKey;
    readonly filesRoot: string;
    readonly mcpSettings: Readonly<Record<string, string>>;
    readonly roots: LocalStackOptions['roots'];
  },
): Readonly<Record<string, string>> => {
  switch (name) {
    case 'authorizer':
      return { SHAREDOS_REDIS_URL: redisUrl, SHAREDOS_TOKEN_SECRET: tokenSecret, SHAREDOS_ROOTS: JSON.stringify(roots) };
    case 'audit-projector':
      return {
        SHAREDOS_ROOTS: JSON.stringify(roots),
        SHAREDOS_SEAL_KEYS: `${sealKey.keyId}:${sealKey.privateKey}`,
      };
    case 'tool-executor':
      return {
        SHAREDOS_FILES_ROOT: filesRoot,
        SHAREDOS_TOOL_NAMESPACES: 'files,repo,messages,sharedos,mcp',
        SHAREDOS_ROOTS: JSON.stringify(roots),
        ...mcpSettings,
      };
    case 'messaging-router':
      return {};
  }
};

/** What a service may see of our own environment: where programs are, the locale, and where spans go. */
const inherited = (): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) =>
      value !== undefined && (['PATH', 'HOME', 'TMPDIR', 'LANG', 'LC_ALL', 'TZ'].includes(name) || name.startsWith('OTEL_'))
        ? [[name, value]]
        : [],
    ),
  );

/** Kept for later, and so for its owner alone from now on. */
const keptFolder = async (given: string): Promise<string> => {
  const folder = resolve(given);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await chmod(folder, 0o700);
  return folder;
};

const secret = (): string => randomBytes(24).toString('base64url');
