import { Command, CommanderError, Option } from 'commander';
import type { Terminal } from './command-line.ts';
import { agentCommand } from './commands/agent.ts';
import { auditCommand } from './commands/audit.ts';
import { authCommand } from './commands/auth.ts';
import { checkCommand } from './commands/check.ts';
import { devCommand } from './commands/dev.ts';
import { doctorCommand } from './commands/doctor.ts';
import { envCommand } from './commands/env.ts';
import { escalationCommand } from './commands/escalation.ts';
import { grantCommand } from './commands/grant.ts';
import { ledgerCommand } from './commands/ledger.ts';
import { mcpCommand } from './commands/mcp.ts';
import { messageCommand } from './commands/message.ts';
import { applyCommand, planCommand } from './commands/plan.ts';
import { policyCommand } from './commands/policy.ts';
import { recordsCommand } from './commands/records.ts';
import { settingsCommand } from './commands/settings.ts';
import { statusCommand } from './commands/status.ts';
import { resumeCommand, stopCommand } from './commands/stop.ts';
import { toolsCommand } from './commands/tools.ts';
import { turnCommand } from './commands/turn.ts';
import { upCommand } from './commands/up.ts';
import { whatifCommand } from './commands/whatif.ts';
import { CommandFailure, EXIT, type ExitCode } from './exit-code.ts';
import { positiveInteger } from './numbers.ts';

export type { Terminal };

/** The `sharedos` command. */
export const buildProgram = (terminal: Terminal): Command => {
  const program = new Command('sharedos')
    .description('Start SharedOS on this machine, and talk to it as one of its principals.')
    .version('0.1.0')
    .addHelpText(
      'after',
      `
Examples:
  $ sharedos up                                    start the system and keep it running
  $ sharedos grant issue --to agent:scout --resource files:notes --action read
  $ sharedos turn submit --agent scout --purpose "read notes" --call "files.read notes/plan.md"
  $ sharedos audit tail                            watch what is decided

Exit codes: 0 done · 1 refused (also when a turn, or a call of its script, was refused or failed) · 2 wrong usage · 3 unavailable
With --json standard output holds one JSON document, whatever happens; "audit tail --json" and "turn watch --json" print one a
line. What went wrong is on standard error, and in the document {"error":{"code","message"}} when there is no other.`,
    );
  for (const command of [
    upCommand,
    turnCommand,
    grantCommand,
    planCommand,
    applyCommand,
    checkCommand,
    agentCommand,
    policyCommand,
    settingsCommand,
    toolsCommand,
    mcpCommand,
    stopCommand,
    resumeCommand,
    messageCommand,
    escalationCommand,
    ledgerCommand,
    recordsCommand,
    auditCommand,
    whatifCommand,
    authCommand,
    statusCommand,
    doctorCommand,
    envCommand,
    devCommand,
  ]) {
    program.addCommand(withCommonOptions(command(terminal)));
  }
  return prepared(program, terminal);
};

/** Options that every command takes, wherever on the line they stand. */
const withCommonOptions = (command: Command): Command => {
  for (const leaf of leavesOf(command)) {
    leaf
      .option('--json', 'print JSON for programs')
      .option('--context <file>', 'context file (default: the nearest .sharedos/context.json, or $SHAREDOS_CONTEXT)');
    if (leaf.name() === 'up') continue;
    leaf
      .option('--as <kind:id>', 'the principal to speak for')
      .addOption(new Option('--timeout <ms>', 'how long to wait for an answer').argParser(positiveInteger));
  }
  return command;
};

const leavesOf = (command: Command): readonly Command[] => (command.commands.length === 0 ? [command] : command.commands.flatMap(leavesOf));

const prepared = (command: Command, terminal: Terminal): Command => {
  command
    .exitOverride()
    .configureOutput({ writeOut: terminal.out, writeErr: terminal.err })
    .showHelpAfterError('(--help shows how it is used)');
  for (const child of command.commands) prepared(child, terminal);
  return command;
};

/** Runs one command line and answers its exit code. Only a defect of ours throws. */
export const runCommandLine = async (args: readonly string[], terminal: Terminal): Promise<ExitCode> => {
  let hasPrinted = false;
  const out = (text: string): void => {
    hasPrinted = true;
    terminal.out(text);
  };
  // A program that asked for JSON gets one document; people get the line either way.
  const failed = (code: string, message: string, details?: Readonly<Record<string, string>>): void => {
    if (args.includes('--json') && !hasPrinted) out(`${JSON.stringify({ error: { code, message }, ...details })}\n`);
  };
  try {
    await buildProgram({ ...terminal, out }).parseAsync([...args], { from: 'user' });
    return EXIT.ok;
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return EXIT.ok;
      failed('usage', error.message);
      return EXIT.usage;
    }
    if (!(error instanceof CommandFailure)) throw error;
    failed(error.code, error.message, error.details);
    terminal.err(`sharedos: ${error.message}\n`);
    return error.exitCode;
  }
};
