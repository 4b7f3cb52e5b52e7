import { type Replica, askReplicas } from '@sharedos/bus';
import { SERVICE_NAMES, type ServiceName } from '@sharedos/contracts';
import { Command } from 'commander';
import { type Terminal, contextOf, invocationOf, valueOf } from '../command-line.ts';
import { connectOperator } from '../operator/operator-bus.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { durationText } from '../operator/duration-text.ts';
import { table } from '../table.ts';

/** Long enough for a busy machine. Whoever is silent for longer is as good as not there. */
export const REPLICAS_ANSWER_MS = 1_500;

export const statusCommand = (terminal: Terminal): Command =>
  new Command('status')
    .description('Every process of every service: what it is, whether it may be relied on, and how far it is.')
    .addHelpText(
      'after',
      '\nExamples:\n  $ sharedos status\n  $ sharedos status --timeout 5000 --json\n\nExit code 1 when a service has no process that may be relied on.',
    )
    .action(async (_: object, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const bus = await connectOperator(await contextOf(invocation));
      try {
        const waitMs = invocation.options.timeout ?? REPLICAS_ANSWER_MS;
        const asked = await askReplicas(bus, { waitMs, now: Date.now });
        const replicas = valueOf(asked.ok ? asked : { ok: false, error: { kind: 'unavailable', reason: asked.error.reason } });
        const without = servicesWithout(replicas);
        invocation.show({ replicas, without }, statusText(replicas, Date.now()));
        if (without.length > 0)
          throw new CommandFailure(
            EXIT.refused,
            'not_ready',
            `nobody to rely on: ${without.join(', ')}. "sharedos doctor" says what to do`,
          );
      } finally {
        await bus.close();
      }
    });

/** Services of which no process may be relied on. */
export const servicesWithout = (replicas: readonly Replica[]): readonly ServiceName[] =>
  SERVICE_NAMES.filter(
    (name) => !replicas.some(({ service, trouble, clock }) => service === name && trouble === undefined && clock !== undefined),
  );

const statusText = (replicas: readonly Replica[], now: number): string =>
  table(
    ['SERVICE', 'INSTANCE', 'VERSION', 'HEALTH', 'REVISION', 'LAG', 'RUNNING', 'UP'],
    SERVICE_NAMES.flatMap((name) => {
      const mine = replicas.filter(({ service }) => service === name);
      if (mine.length === 0) return [[name, undefined, undefined, 'none answers']];
      return mine.map((one) => [
        one.service,
        one.instance,
        one.version,
        one.trouble ?? (one.clock === undefined ? 'does not say' : 'ready'),
        one.position,
        one.lag,
        one.running,
        durationText(now - one.startedAt),
      ]);
    }),
  );
