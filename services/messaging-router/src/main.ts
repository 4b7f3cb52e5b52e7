import { randomUUID } from 'node:crypto';
import { AuthorityClient, pause, runService, serveRoutes, storeAudit } from '@sharedos/bus';
import { jetStreamLedger } from '@sharedos/ledger';
import { composeMessagingRouter } from './compose.ts';
import { routerSettings } from './config.ts';
import { InboxRuleBook } from './inbox-rules.ts';
import { inboxHolds } from './inbox-holds.ts';

const REQUESTS_AT_ONCE = 256;

await runService('messaging-router', routerSettings, async (settings, { bus, instance, clock, log, onDefect }) => {
  const ledger = jetStreamLedger(bus);
  const routes = composeMessagingRouter({
    bus,
    authority: new AuthorityClient(bus, settings.SHAREDOS_DEADLINE_MS),
    ledger,
    inboxHolds: inboxHolds(bus),
    rules: new InboxRuleBook(bus, clock),
    wait: (ms) => pause(ms),
    audit: storeAudit(bus, settings.SHAREDOS_DEADLINE_MS, (event, why) => log('audit delayed', { type: event.type, id: event.id, why })),
    clock,
    ids: randomUUID,
    instance,
  });
  const served = await serveRoutes(bus, {
    service: 'messaging-router',
    version: '0.1.0',
    instance,
    routes,
    concurrencyMax: REQUESTS_AT_ONCE,
    onDefect,
  });
  return {
    trouble: () => undefined,
    stop: async (graceMs) => {
      await served.stop({ graceMs });
      await ledger.close();
    },
  };
});
