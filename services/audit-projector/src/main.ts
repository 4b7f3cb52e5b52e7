import { randomUUID } from 'node:crypto';
import { AuthorityClient, forwardQueue, VERSION, runService, serveRoutes, storeAudit, streamHead, streamInfo } from '@sharedos/bus';
import { logQuestions } from './ask-log.ts';
import { BuildProgress } from './build-progress.ts';
import { composeAuditProjector } from './compose.ts';
import { projectorSettings } from './config.ts';
import { followRecords } from './follow-records.ts';
import { projectionProgress, watchProjection } from './projection-metrics.ts';
import { RecordStore } from './record-store.ts';
import { SealKeys } from './seal-keys.ts';
import { Sealer } from './seal-records.ts';

const REQUESTS_AT_ONCE = 64;
const FORWARDED_AT_ONCE = 64;
const HEAD_MS = 3_000;
/** What an authorizer may take to compute a page, beside its own wait for the log. */
const FOLDING_MS = 3_000;

await runService('audit-projector', projectorSettings, async (settings, { bus, instance, clock, log, onDefect, state }) => {
  const onParked = (what: string): void => log('parked', { what });
  const keys = new SealKeys(settings.SHAREDOS_SEAL_KEYS);
  const stream = await streamInfo(bus, 'AUDIT', { timeoutMs: HEAD_MS });
  if (!stream.ok) throw new Error(`the stream of records does not answer: ${stream.error.reason}`);
  const records = new RecordStore(settings.SHAREDOS_RECORDS_DB, {
    streamId: stream.value.created,
    recordsMax: settings.SHAREDOS_RECORDS_MAX,
    recordsMaxOf: settings.SHAREDOS_RECORDS_MAX_OF,
  });
  const build = new BuildProgress({ position: () => records.position, upTo: stream.value.state.last_seq, log });
  const following = followRecords(bus, records, { onFolded: () => build.folded(), onParked, onDefect });
  const sealer = new Sealer({
    bus,
    records,
    keys,
    clock,
    intervalMs: settings.SHAREDOS_SEAL_INTERVAL_MS,
    deadlineMs: settings.SHAREDOS_DEADLINE_MS,
    onHead: following.news,
    log,
    onDefect,
  });
  const behind = (): string | undefined => (following.alive ? undefined : 'the stream of records is silent');
  const service = composeAuditProjector({
    authority: new AuthorityClient(bus, settings.SHAREDOS_DEADLINE_MS),
    log: logQuestions(bus, settings.SHAREDOS_DEADLINE_MS + FOLDING_MS),
    records,
    keys,
    folded: following.folded,
    head: () => streamHead(bus, 'AUDIT', { timeoutMs: HEAD_MS }),
    behind,
    building: () => build.missing,
    roots: settings.SHAREDOS_ROOTS,
    audit: storeAudit(bus, settings.SHAREDOS_DEADLINE_MS, (event, why) => log('audit delayed', { type: event.type, id: event.id, why })),
    clock,
    ids: randomUUID,
    onParked,
  });
  const served = await serveRoutes(bus, {
    service: 'audit-projector',
    version: VERSION,
    instance,
    state,
    routes: service.routes,
    concurrencyMax: REQUESTS_AT_ONCE,
    onDefect,
  });
  const forwarded = { stream: 'LEDGER', consumer: 'audit-projector' } as const;
  watchProjection(bus, records, forwarded);
  const queue = forwardQueue(bus, {
    ...forwarded,
    concurrency: FORWARDED_AT_ONCE,
    handle: service.forward,
    onDefect,
    onTrouble: (reason) => log('queue trouble', { reason }),
  });
  return {
    trouble: () => behind() ?? build.missing ?? sealer.trouble ?? (queue.alive ? undefined : 'the ledger does not answer'),
    progress: () => projectionProgress(bus, records),
    stop: async (graceMs) => {
      await queue.stop({ graceMs });
      await served.stop({ graceMs: 1_000 });
      await following.stop();
      await sealer.stop();
      records.close();
    },
  };
});
