import { join } from 'node:path';
import { VERSION, runService, serveRoutes, storeAudit } from '@sharedos/bus';
import { ok } from '@sharedos/contracts';
import { jetStreamLedger } from '@sharedos/ledger';
import { redisUsageStore } from '@sharedos/usage';
import { ActRecords } from './changes/act-records.ts';
import { AuthorityFold } from './fold/authority-fold.ts';
import { composeAuthorizer } from './compose.ts';
import { CLOCKS_APART_MS, LONGEST_TURN_MS, authorizerSettings } from './config.ts';
import { keepEscalations } from './escalations/keep-escalations.ts';
import { openTeller } from './escalations/open-teller.ts';
import { tellAgain } from './escalations/tell-again.ts';
import { loadFold } from './fold/fold-snapshot.ts';
import { keepFold } from './fold/keep-fold.ts';
import { watchFold, watchUsage } from './turns/decision-metrics.ts';
import { LogHistory } from './recompute/log-history.ts';
import { openLog } from './open-log.ts';
import { recordRecentActs } from './changes/record-recent-acts.ts';
import type { SnapshotPlace } from './fold/snapshot-file.ts';
import { TurnTokens } from './turns/turn-token.ts';

const REQUESTS_AT_ONCE = 512;
/** Longest that a start may take to fold the log: without a snapshot, some thirty seconds for each million of events. */
const CATCH_UP_MS = 300_000;

await runService('authorizer', authorizerSettings, async (settings, { bus, instance, clock, log, onDefect, state }) => {
  const deadlineMs = settings.SHAREDOS_DEADLINE_MS;
  const store = await openLog(settings, bus, onDefect);
  if (!store.ok) throw new Error(`the log cannot be reached: ${store.error.reason}`);
  const start = await store.value.barrier(deadlineMs);
  if (!start.ok) throw new Error(`the log did not say how far it reaches: ${start.error.reason}`);
  const folder = settings.SHAREDOS_SNAPSHOT_FOLDER;
  const place: SnapshotPlace | undefined =
    folder === undefined
      ? undefined
      : { path: join(folder, 'authority.snapshot'), storeId: store.value.storeId, secret: settings.SHAREDOS_TOKEN_SECRET };
  const snapshot = place === undefined ? ok(undefined) : await loadFold(place, start.value);
  if (!snapshot.ok) log('snapshot ignored', { why: snapshot.error });
  else if (snapshot.value !== undefined) log('snapshot loaded', { position: snapshot.value.position, grants: snapshot.value.index.size });
  const fold = new AuthorityFold((what) => log('log trouble', { what }), snapshot.ok ? snapshot.value : undefined);
  watchFold(fold);
  fold.follow(store.value);
  // Ready means caught up: a replica that starts behind would only answer that it is unavailable.
  const caughtUp = await fold.until(start.value, CATCH_UP_MS);
  if (!caughtUp.ok) throw new Error(`the log could not be folded up to its end: ${caughtUp.error.reason}`);
  const kept = keepFold(fold, {
    clock,
    historyMs: LONGEST_TURN_MS + settings.SHAREDOS_GRACE_FOR_TURNS_MS + CLOCKS_APART_MS,
    ...(place === undefined ? {} : { snapshots: { place, everyMs: settings.SHAREDOS_SNAPSHOT_INTERVAL_MS } }),
    log,
  });

  const ledger = jetStreamLedger(bus);
  const noteUsage = watchUsage();
  const usage = redisUsageStore({
    url: settings.SHAREDOS_REDIS_URL,
    spentUses: async () => {
      const uses = await ledger.uses();
      return uses.ok ? { ok: true, value: uses.value.map(({ namespaceId, use }) => ({ namespaceId, ...use })) } : uses;
    },
    onState: (state) => {
      noteUsage(state);
      log('counters', { ...state });
    },
  });

  const audit = storeAudit(bus, deadlineMs, (event) => log('audit lost', { type: event.type, id: event.id }));
  const records = new ActRecords(audit);
  const limits = { deadlineMs, turnGraceMs: settings.SHAREDOS_GRACE_FOR_TURNS_MS };
  const tidings = await openTeller(settings, { bus, store: store.value, fold, limits, clock, log });
  const ports = {
    store: store.value,
    fold,
    usage,
    tokens: new TurnTokens(settings.SHAREDOS_TOKEN_SECRET),
    audit,
    clock,
    roots: settings.SHAREDOS_ROOTS,
    questionLastsMs: settings.SHAREDOS_QUESTION_LASTS_MS,
    tidings,
    limits,
  };
  const history = new LogHistory(store.value);
  const routes = composeAuthorizer(ports, records, history);
  const questions = keepEscalations({ ...ports, records }, tidings, {
    onTrouble: (what) => log('question not settled', { why: what }),
  });
  const since = clock() - settings.SHAREDOS_RECORD_AGAIN_MS;
  tellAgain(ports, tidings, since);
  const recent = { since, from: fold.index.positionAt(since), upTo: start.value };
  const again = recordRecentActs({ store: store.value, records }, recent);
  const served = await serveRoutes(bus, {
    service: 'authorizer',
    version: VERSION,
    instance,
    state,
    routes,
    concurrencyMax: REQUESTS_AT_ONCE,
    onDefect,
  });
  return {
    trouble: () => fold.trouble,
    progress: () => ({ log: store.value.storeId, position: fold.position, lag: fold.behind }),
    stop: async (graceMs) => {
      await served.stop({ graceMs });
      await questions.stop();
      await tidings.stop();
      await again.close();
      await records.close();
      await history.close();
      await fold.close();
      await kept.stop();
      await usage.close();
      await store.value.close();
      await ledger.close();
    },
  };
});
