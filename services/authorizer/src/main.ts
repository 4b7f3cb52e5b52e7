import { runService, serveRoutes, storeAudit } from '@sharedos/bus';
import { jetStreamLedger } from '@sharedos/ledger';
import { redisUsageStore } from '@sharedos/usage';
import { AuthorityFold } from './authority-fold.ts';
import { composeAuthorizer } from './compose.ts';
import { authorizerSettings } from './config.ts';
import { openLog } from './open-log.ts';
import { TurnTokens } from './turn-token.ts';

const REQUESTS_AT_ONCE = 512;

await runService('authorizer', authorizerSettings, async (settings, { bus, instance, clock, log, onDefect }) => {
  const deadlineMs = settings.SHAREDOS_DEADLINE_MS;
  const store = await openLog(settings, bus, onDefect);
  if (!store.ok) throw new Error(`the log cannot be reached: ${store.error.reason}`);
  const fold = new AuthorityFold((what) => log('log trouble', { what }));
  fold.follow(store.value);
  // Ready means caught up: a replica that starts behind would only answer that it is unavailable.
  const start = await store.value.barrier(deadlineMs);
  if (!start.ok || !(await fold.until(start.value, 60_000)).ok) throw new Error('the log could not be folded up to its end');

  const ledger = jetStreamLedger(bus);
  const usage = redisUsageStore({
    url: settings.SHAREDOS_REDIS_URL,
    spentUses: async () => {
      const uses = await ledger.uses();
      return uses.ok ? { ok: true, value: uses.value.map(({ namespaceId, use }) => ({ namespaceId, ...use })) } : uses;
    },
    onState: (state) => log('counters', { ...state }),
  });

  const routes = composeAuthorizer({
    store: store.value,
    fold,
    usage,
    tokens: new TurnTokens(settings.SHAREDOS_TOKEN_SECRET),
    audit: storeAudit(bus, deadlineMs, (event) => log('audit lost', { type: event.type, id: event.id })),
    clock,
    limits: { deadlineMs, turnGraceMs: settings.SHAREDOS_GRACE_FOR_TURNS_MS },
  });
  const served = await serveRoutes(bus, {
    service: 'authorizer',
    version: '0.1.0',
    instance,
    routes,
    concurrencyMax: REQUESTS_AT_ONCE,
    onDefect,
  });
  return {
    trouble: () => fold.trouble,
    stop: async (graceMs) => {
      await served.stop({ graceMs });
      await fold.close();
      await usage.close();
      await store.value.close();
      await ledger.close();
    },
  };
});
