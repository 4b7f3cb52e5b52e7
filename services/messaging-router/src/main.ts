import { randomUUID } from 'node:crypto';
import { AuthorityClient, pause, VERSION, runService, serveRoutes, storeAudit } from '@sharedos/bus';
import { jetStreamLedger } from '@sharedos/ledger';
import { composeMessagingRouter } from './compose.ts';
import { routerSettings } from './config.ts';
import { InboxRuleBook } from './inbox-rules.ts';
import { inboxHolds } from './inbox-holds.ts';
import { ParkedMessages } from './parked-messages.ts';
import type { Ports } from './ports.ts';
import { RouteLeases } from './route-leases.ts';
import { WaitingMessages } from './waiting-messages.ts';

const REQUESTS_AT_ONCE = 256;

await runService('messaging-router', routerSettings, async (settings, { bus, instance, clock, log, onDefect, state }) => {
  const ledger = jetStreamLedger(bus);
  const parked = new ParkedMessages(bus);
  const waiting: WaitingMessages = new WaitingMessages(() => ports, parked, onDefect);
  const ports: Ports = {
    bus,
    authority: new AuthorityClient(bus, settings.SHAREDOS_DEADLINE_MS),
    ledger,
    inboxHolds: inboxHolds(bus),
    rules: new InboxRuleBook(bus, clock),
    routes: new RouteLeases(bus),
    parked,
    waiting,
    sendLeaseMs: settings.SHAREDOS_SEND_LEASE_MS,
    audit: storeAudit(bus, settings.SHAREDOS_DEADLINE_MS, (event, why) => log('audit delayed', { type: event.type, id: event.id, why })),
    clock,
    ids: randomUUID,
    instance,
  };
  const served = await serveRoutes(bus, {
    service: 'messaging-router',
    version: VERSION,
    instance,
    state,
    routes: composeMessagingRouter(ports),
    concurrencyMax: REQUESTS_AT_ONCE,
    onDefect,
  });
  waiting.start(pause);
  return {
    trouble: () => undefined,
    stop: async (graceMs) => {
      await served.stop({ graceMs });
      await waiting.stop();
      await ledger.close();
    },
  };
});
