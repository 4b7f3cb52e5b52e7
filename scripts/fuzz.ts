// `npm run fuzz -- kernel|contracts|decisions`: what `npm test` does a little of, at length.
import { parseArgs } from 'node:util';
import { livedThrough, recomputed } from '../services/authorizer/src/recompute/lived-through.fixture.ts';
import { bodiesUnderFire, contractsUnderFire } from '../test/hostile/contracts-under-fire.ts';
import { PROPERTIES } from '../test/oracle/properties.ts';
import { runProperty, unmet } from '../test/oracle/run-property.ts';

const USAGE = `usage: npm run fuzz -- <kernel|contracts|decisions> [options]

  kernel      the decision rule against its second statement, in small worlds
    --worlds N      how many in all (1 000 000)
  contracts   hostile and near-valid documents, each put to every contract, and as many bodies
    --documents N   how many (100 000)
  decisions   recorded decisions of a long life of a namespace, computed again from its log alone
    --decisions N   how many (100 000)

  --seed N    the run that printed this seed, again
`;

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const newSeed = (): number => Math.floor(Math.random() * 2 ** 31);

const fuzzKernel = (worlds: number, seed: number): number => {
  say(`seed ${seed}`);
  let failed = 0;
  for (const property of PROPERTIES) {
    const started = performance.now();
    try {
      const met = runProperty(property, { worlds: Math.ceil(worlds / PROPERTIES.length), seed });
      const missed = unmet(met);
      if (missed.length > 0) failed += 1;
      say(`${missed.length === 0 ? '✓' : '✗'} ${property.name} (${seconds(started)})`);
      for (const [premise, times] of met) say(`    ${String(times).padStart(9)}  ${premise}`);
    } catch (problem) {
      failed += 1;
      say(`✗ ${property.name}\n${problem instanceof Error ? problem.stack : String(problem)}`);
    }
  }
  return failed;
};

const fuzzContracts = (documents: number, seed: number): number => {
  say(`seed ${seed}`);
  const started = performance.now();
  const { judgements, accepted, slowestMs } = contractsUnderFire({ documents, seed });
  const never = [...accepted].filter(([, times]) => times === 0).map(([name]) => name);
  say(`✓ ${documents} documents, judged ${judgements} times, the slowest in ${Math.round(slowestMs)} ms (${seconds(started)})`);
  for (const name of never) say(`✗ ${name} accepted none of them`);
  const bodies = bodiesUnderFire({ documents, seed });
  say(`✓ ${documents} bodies: ${bodies.accepted} times accepted, ${bodies.refused} times refused (${seconds(started)})`);
  return never.length;
};

const fuzzDecisions = async (decisions: number, seed: number): Promise<number> => {
  say(`seed ${seed}`);
  const started = performance.now();
  const { world, recorded } = await livedThrough(seed, decisions);
  say(`  ${recorded.length} decisions recorded (${seconds(started)})`);
  const again = performance.now();
  const answers = await recomputed(world, recorded);
  await world.close();
  const wrong = answers.flatMap((answer, index) => (answer.status === 'same' ? [] : [{ answer, record: recorded[index] }]));
  say(`${wrong.length === 0 ? '✓' : '✗'} ${answers.length} computed again, ${wrong.length} of them otherwise (${seconds(again)})`);
  for (const each of wrong.slice(0, 3)) say(`    ${JSON.stringify(each)}`);
  const reasons = Map.groupBy(recorded, ({ reason, outcome }) => reason ?? outcome);
  for (const [reason, { length }] of reasons) say(`    ${String(length).padStart(9)}  ${reason}`);
  return wrong.length;
};

const seconds = (since: number): string => `${((performance.now() - since) / 1000).toFixed(1)} s`;

const count = (text: string | undefined, otherwise: number): number => {
  const read = text === undefined ? otherwise : Number(text);
  if (!Number.isSafeInteger(read) || read < 1) throw new Error(`${text} is no number of anything`);
  return read;
};

const main = async (): Promise<number> => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      worlds: { type: 'string' },
      documents: { type: 'string' },
      decisions: { type: 'string' },
      seed: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  const [what] = positionals;
  const seed = count(values.seed, newSeed());
  const kinds: Readonly<Record<string, () => number | Promise<number>>> = {
    kernel: () => fuzzKernel(count(values.worlds, 1_000_000), seed),
    contracts: () => fuzzContracts(count(values.documents, 100_000), seed),
    decisions: () => fuzzDecisions(count(values.decisions, 100_000), seed),
  };
  const fuzz = positionals.length === 1 && Object.hasOwn(kinds, what ?? '') ? kinds[what ?? ''] : undefined;
  if (values.help || fuzz === undefined) {
    process.stderr.write(USAGE);
    return values.help ? 0 : 2;
  }
  return (await fuzz()) === 0 ? 0 : 1;
};

process.exitCode = await main();
