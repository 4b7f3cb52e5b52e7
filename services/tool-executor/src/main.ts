import { randomUUID } from 'node:crypto';
import { AuthorityClient, VERSION, runService, serveRoutes, storeAudit, WORK_QUEUES, within, workQueue } from '@sharedos/bus';
import type { NamespaceSettings } from '@sharedos/contracts';
import { escalateTool } from '@sharedos/kernel';
import { jetStreamLedger } from '@sharedos/ledger';
import { RemoteAgentFailure, createEnvelope } from '@sharedos/runtime';
import { ToolRegistry, filesProvider, filesTools, loadTools, repoProvider, repoTools } from '@sharedos/tools';
import { ReplyFeed } from './await-reply.ts';
import { executorRuntimes, runtimeOf } from './choose-runtime.ts';
import { composeToolExecutor } from './compose.ts';
import { CLOCK_SKEW_MS, executorSettings } from './config.ts';
import { openMcp } from './mcp/mcp-settings.ts';
import { OwnServers } from './mcp/own-servers.ts';
import { keepExpiring } from './expire-turns.ts';
import { watchLedgerRoom } from './ledger-room.ts';
import { countersOver } from './reserved-uses.ts';
import { NamespaceLimits } from './namespace-limits.ts';
import { RunningTurns } from './running-turns.ts';
import { watchQueue } from './turn-metrics.ts';

const REQUESTS_AT_ONCE = 64;
const PASS_ENDS_MS = 1_000;
/** For the records of the longest turn with the largest results; the queue's lease is extended meanwhile. */
const TURN_READ_MS = 60_000;

const classOf = (error: unknown): string => (error instanceof Error ? error.name : 'not an error');

/** The settings of a namespace; `undefined` while nobody can say. */
const settingsOf =
  (authority: AuthorityClient) =>
  async (namespaceId: string): Promise<NamespaceSettings | undefined> => {
    const facts = await authority.namespace(namespaceId);
    return facts.ok ? facts.value.settings : undefined;
  };

await runService('tool-executor', executorSettings, async (settings, { bus, instance: name, clock, log, onDefect, state }) => {
  // A restarted process must not be taken for the one that claimed a turn before it.
  const instance = `${name}-${randomUUID().slice(0, 8)}`;
  const registry = new ToolRegistry();
  const root = settings.SHAREDOS_FILES_ROOT;
  for (const tool of [...filesTools(filesProvider({ root })), ...repoTools(repoProvider({ root }))]) registry.register(tool);
  for (const place of settings.SHAREDOS_TOOLS_FROM) for (const tool of await loadTools(place)) registry.register(tool);
  // Asking for a human is a capability like any other: nobody has it whom it was not granted.
  registry.register(escalateTool);

  const mcpAccess = await openMcp(settings);
  const servers = new OwnServers({ bus, pool: mcpAccess?.pool, onDefect });

  const maxToolCalls = settings.SHAREDOS_MAX_TOOL_CALLS;
  const defaults = {
    maxSteps: settings.SHAREDOS_MAX_STEPS,
    ...(maxToolCalls === undefined ? {} : { maxToolCalls }),
    timeoutMs: settings.SHAREDOS_TURN_TIMEOUT_MS,
    drainGraceMs: settings.SHAREDOS_DRAIN_GRACE_MS,
  };
  const ledger = jetStreamLedger(bus, { readTimeoutMs: TURN_READ_MS });
  const ledgerRoom = watchLedgerRoom(bus, (isShort) => log('ledger room', { isShort }));
  const expiring = keepExpiring(ledger, {
    clock,
    horizonMs: settings.SHAREDOS_HORIZON_MS,
    skewMs: CLOCK_SKEW_MS,
    everyMs: settings.SHAREDOS_EXPIRE_EVERY_MS,
    onPass: (pass) => log('turns expired', pass),
  });
  const running = new RunningTurns();
  const replies = new ReplyFeed(bus, onDefect);
  if (!(await replies.start())) throw new Error('the stream of replies does not answer');
  const runtimes = executorRuntimes(settings, {
    bus,
    clock,
    onTurnError: (error) =>
      log('driver failed', { error: classOf(error), ...(error instanceof RemoteAgentFailure ? { reason: error.reason } : {}) }),
  });
  // A name that this executor does not have stops it here, and not in the first turn.
  const ownRuntime = runtimes.resolve(settings.SHAREDOS_RUNTIME);
  const namespaceSettings = settingsOf(new AuthorityClient(bus, settings.SHAREDOS_DEADLINE_MS));
  const service = composeToolExecutor({
    bus,
    authority: new AuthorityClient(bus, settings.SHAREDOS_DEADLINE_MS),
    ledger,
    ledgerRoom,
    replies,
    counters: countersOver(bus),
    registry,
    mcp: { servers, access: mcpAccess },
    ...(mcpAccess === undefined ? {} : { contextTools: servers.tools.bind(servers) }),
    envelope: createEnvelope({
      runtime: ownRuntime,
      clock,
      ids: randomUUID,
      defaults,
      onTurnError: (error, turn) => log('turn failed', { ...turn, error: classOf(error) }),
    }),
    runtimeOf: (choice) => runtimeOf(runtimes, ownRuntime, choice),
    defaults,
    running,
    limits: new NamespaceLimits(namespaceSettings),
    roots: settings.SHAREDOS_ROOTS,
    rules: {
      toolNamespaces: settings.SHAREDOS_TOOL_NAMESPACES,
      horizonMs: settings.SHAREDOS_HORIZON_MS,
      skewMs: CLOCK_SKEW_MS,
      trustedHosts: settings.SHAREDOS_TRUSTED_HOSTS,
    },
    audit: storeAudit(bus, settings.SHAREDOS_DEADLINE_MS, (event, why) => log('audit delayed', { type: event.type, id: event.id, why })),
    clock,
    ids: randomUUID,
    instance,
    onProviderError: (error, at) => log('tool failed', { ...at, error: classOf(error) }),
    onDefect,
  });

  const served = await serveRoutes(bus, {
    service: 'tool-executor',
    version: VERSION,
    instance,
    state,
    routes: service.routes,
    concurrencyMax: REQUESTS_AT_ONCE,
    onDefect,
  });
  const queue = workQueue(bus, {
    ...WORK_QUEUES['tool-executor'],
    group: 'tool-executor',
    concurrency: settings.SHAREDOS_TURNS_AT_ONCE,
    leaseMs: settings.SHAREDOS_TURN_LEASE_MS,
    runningMax: async (namespaceId) => (await namespaceSettings(namespaceId))?.turnsRunningMax,
    handle: service.take,
    onDefect,
    onTrouble: (reason) => log('queue trouble', { reason }),
  });
  watchQueue(bus, queue, clock);
  return {
    trouble: () => (queue.alive ? undefined : 'the queue of turns does not answer'),
    progress: () => ({ running: queue.running }),
    // Turns begun are finished, or cancelled at the end of the grace; then the process still answers for them until it is gone.
    stop: async (graceMs) => {
      await queue.stop({ graceMs });
      await served.stop({ graceMs: 1_000 });
      ledgerRoom.stop();
      // A broker that does not answer keeps a pass for long, and what it had not written yet it does not write.
      await within(expiring.stop(), PASS_ENDS_MS);
      await mcpAccess?.pool.stop();
      await replies.stop();
      await ledger.close();
    },
  };
});
