import { VERSION, askReplicas, brokerFacts } from '@sharedos/bus';
import { PAYLOAD_BYTES_MAX } from '@sharedos/contracts';
import { Command } from 'commander';
import { type Invocation, type Terminal, invocationOf } from '../command-line.ts';
import { type Context, contextPlace, readContext } from '../context-file.ts';
import { CommandFailure, EXIT } from '../exit-code.ts';
import { checkBroker } from '../operator/check-broker.ts';
import { checkContext } from '../operator/check-context.ts';
import { checkReplicas } from '../operator/check-replicas.ts';
import { checkRights } from '../operator/check-rights.ts';
import { checkAllStreams } from '../operator/check-streams.ts';
import { type Finding, error } from '../operator/finding.ts';
import { connectOperator } from '../operator/operator-bus.ts';
import { printable } from '../table.ts';
import { REPLICAS_ANSWER_MS } from './status.ts';

export const doctorCommand = (terminal: Terminal): Command =>
  new Command('doctor')
    .description('Looks at the configuration, the broker, its streams, the rights on it and every process, and says what to do.')
    .addHelpText(
      'after',
      '\nExamples:\n  $ sharedos doctor\n  $ sharedos doctor --json\n\nExit code 1 when there is something to do. It changes nothing.',
    )
    .action(async (_: object, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const file = await contextPlace(terminal.cwd, invocation.options.context ?? terminal.env['SHAREDOS_CONTEXT']);
      const findings = [...(await examined(invocation, await readContext(file))), ...(await checkContext(file))];
      const toDo = findings.filter(({ severity }) => severity !== 'note');
      invocation.show({ healthy: toDo.length === 0, findings }, textOf(findings));
      if (toDo.length > 0) throw new CommandFailure(EXIT.refused, 'unhealthy', `${toDo.length} to do`);
    });

const examined = async ({ options }: Invocation, context: Context): Promise<readonly Finding[]> => {
  const bus = await connectOperator(context).catch((problem: unknown) => {
    if (problem instanceof CommandFailure && problem.code === 'not_connected') return problem;
    throw problem;
  });
  if (bus instanceof CommandFailure)
    return [error('broker_unreachable', bus.message, 'start the broker, or correct "natsUrl" and "operator" in the context')];
  try {
    const [streams, replicas, rights] = await Promise.all([
      checkAllStreams(bus),
      askReplicas(bus, { waitMs: options.timeout ?? REPLICAS_ANSWER_MS, now: Date.now }),
      checkRights(context, options.as ?? context.defaultPrincipal),
    ]);
    return [
      ...checkBroker(brokerFacts(bus), PAYLOAD_BYTES_MAX),
      ...streams,
      ...rights,
      ...(replicas.ok
        ? checkReplicas(replicas.value, VERSION)
        : [
            error('services_silent', `nobody could be asked: ${replicas.error.reason}`, 'look at the rights of the operator on the broker'),
          ]),
    ];
  } finally {
    await bus.close();
  }
};

const textOf = (findings: readonly Finding[]): string =>
  findings.length === 0
    ? 'nothing to do\n'
    : findings
        .map(({ severity, code, what, remedy }) => `${severity}  ${code}\n  ${printable(what)}\n  → ${printable(remedy)}\n`)
        .join('\n');
