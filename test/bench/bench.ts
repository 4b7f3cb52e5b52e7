// `npm run bench`: measures the real system, or the kernel alone, against what bounds it. See docs/performance.md.
import { availableParallelism, loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { benchAudit } from './audit.ts';
import { benchCalls } from './call.ts';
import { benchGrants } from './grants.ts';
import { benchKernel } from './kernel.ts';
import { benchMessages } from './messages.ts';
import { tableOf } from './rows.ts';
import { benchTools } from './tools.ts';

const USAGE = `usage: npm run bench -- [call | kernel | tools | grants | audit | messages] [--quick] [--json] [--cpu-profiles FOLDER]

  call      one mediated tool call, its floors, decisions and opening a turn (under two minutes)
  kernel    one decision in process, beside other libraries and the plain walk (under a minute); starts no server
  tools     files.read and files.search beside the same done bare, and a catalogue listed (under a minute); starts no server
  grants    a million grants folded, kept and started from, what openings and decisions take of them, here and over the wire (minutes)
  audit     records on their way to a subscriber, a million of them looked up, the proof, growth, and a rebuild (minutes)
  messages  a message sent, and a request of a turn with its reply, against their sequential floors (under two minutes)

  --quick   few and short runs, under half a minute: to see that it works
  --json    print {"rows":[…]} and nothing else (with npm run, say: npm run --silent bench -- call --json)
  --cpu-profiles FOLDER   let each service write a V8 profile there
`;

const say = (line: string): void => void process.stderr.write(`${line}\n`);

const main = async (): Promise<number> => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      quick: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
      'cpu-profiles': { type: 'string' },
    },
  });
  const [name = 'call', ...more] = positionals;
  if (values.help || more.length > 0 || !['call', 'kernel', 'tools', 'grants', 'audit', 'messages'].includes(name)) {
    process.stderr.write(USAGE);
    return values.help ? 0 : 2;
  }
  const [load = 0] = loadavg();
  if (load > availableParallelism())
    say(
      `warning: a load of ${load.toFixed(1)} on ${availableParallelism()} cores; ratios are of a quiet machine, trust processor time only`,
    );
  const { quick, 'cpu-profiles': cpuProfiles } = values;
  const rows =
    name === 'kernel'
      ? await benchKernel({ quick, say })
      : name === 'tools'
        ? await benchTools({ quick, say })
        : name === 'grants'
          ? await benchGrants({ quick, say })
          : name === 'audit'
            ? await benchAudit({ quick, say })
            : name === 'messages'
              ? await benchMessages({ quick, say })
              : await benchCalls({ quick, say, cpuProfiles });
  process.stdout.write(values.json ? `${JSON.stringify({ rows })}\n` : `\n${tableOf(rows)}\n`);
  return 0;
};

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    say(error instanceof Error ? error.message : String(error));
    process.exit(1);
  },
);
