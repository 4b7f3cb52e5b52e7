import type { ClientError, Route } from '@sharedos/client';
import type { Result, RouteShown } from '@sharedos/contracts';
import { Command, Option } from 'commander';
import { type Terminal, connected, invocationOf, valueOf } from '../command-line.ts';
import { parseDuration } from '../duration.ts';
import { positiveInteger } from '../numbers.ts';

const TTL = '60s';

/** Whether there is a live path to whoever speaks: opened, renewed and closed by nobody else. */
export const routeCommand = (terminal: Terminal): Command => {
  const command = new Command('route').description('Whether messages go out to you at once, wait for you, or are not taken.');
  const act = (
    name: string,
    what: string,
    ask: (route: Route, lease: number, ttlMs: number) => Promise<Result<RouteShown, ClientError>>,
  ) => {
    const one = command.command(name).description(what);
    const withLease = name === 'renew' || name === 'pause';
    if (withLease) one.argument('<lease>', 'as opening it said', positiveInteger);
    if (name === 'open' || name === 'renew')
      one.addOption(
        new Option('--for <duration>', 'how long the lease lasts, 1s to 1h').argParser(parseDuration).default(parseDuration(TTL), TTL),
      );
    one.addHelpText(
      'after',
      `\nExample:\n  $ sharedos message route ${name}${withLease ? ' 3' : ''}${name === 'open' ? ' --for 10m' : ''} --as human:bob`,
    );
    one.action(async (...given: unknown[]) => {
      const self = given.at(-1) as Command;
      const lease = withLease ? (given[0] as number) : 0;
      const { for: ttlMs = 0 } = self.opts<{ readonly for?: number }>();
      const invocation = invocationOf(terminal, self);
      const shown = await connected(invocation, async ({ messages }) => valueOf(await ask(messages.route, lease, ttlMs)));
      invocation.show(shown, `${lineOf(shown)}\n`);
    });
  };
  act('show', 'Your route as it stands.', (route) => route.show());
  act('open', 'Open a route: what waits for you leaves, and what is sent goes out at once.', (route, _, ttlMs) => route.open(ttlMs));
  act('renew', 'Lengthen the lease of your route.', (route, lease, ttlMs) => route.renew(lease, ttlMs));
  act('pause', 'Let your route lapse now: what is sent waits until you open another.', (route, lease) => route.pause(lease));
  act('close', 'Take nothing more, and revoke what has not arrived.', (route) => route.close());
  act('forget', 'Go back to an inbox without a route.', (route) => route.forget());
  return command;
};

const lineOf = ({ route, live, parked }: RouteShown): string => {
  const waiting = parked === 0 ? '' : `, ${parked} waiting`;
  switch (route.status) {
    case 'none':
      return `no route: messages are in your inbox${waiting}`;
    case 'closed':
      return `closed since ${route.closedAt}`;
    case 'open':
      return `lease ${route.lease} ${live ? 'until' : 'lapsed at'} ${route.expiresAt}${waiting}`;
  }
};
