// `npm run mutate`: breaks the rules one at a time, each in a private copy of the tree, and sees that a test says so.
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { MUTANTS, type Mutant } from './mutate/mutants.ts';
import { privateCopy } from './mutate/private-copy.ts';
import { type SpecsOutcome, runSpecs } from './mutate/run-specs.ts';

const USAGE = `usage: npm run mutate [-- options]

  --only N,M    the mutants of these numbers, as docs/mutations.md has them
  --jobs N      copies to work in at once (2)
  --minutes N   take no new mutant after this long; those not tried count as survivors (20)
`;

/** One run of a few specs. A mutant that makes a test run for ever is caught too, but only this late. */
const RUN_TIMEOUT_MS = 180_000;

type Verdict =
  | { readonly verdict: 'caught'; readonly by: string }
  | { readonly verdict: 'survived' | 'not found' | 'not tried' | 'not run'; readonly by?: string };

const say = (line: string): void => void process.stdout.write(`${line}\n`);

/** Specs that look at a file from further away than its own. */
const FURTHER: Readonly<Record<string, readonly string[]>> = {
  'libs/kernel/src/paths.ts': ['libs/kernel/src/matching.spec.ts', 'libs/kernel/src/delegation.spec.ts'],
  'libs/kernel/src/ceiling.ts': ['libs/kernel/src/decide.spec.ts'],
  'libs/kernel/src/authority-index.ts': ['libs/kernel/src/compiled-authority.spec.ts'],
  'libs/kernel/src/decide.ts': ['libs/kernel/src/live-revocation.spec.ts', 'libs/kernel/src/bound-grant.spec.ts'],
  'libs/kernel/src/constraints.ts': ['libs/kernel/src/constraints-meet.spec.ts'],
  'services/authorizer/src/turns/asked-turn.ts': ['services/authorizer/src/turns/decide-authority.spec.ts'],
  'libs/kernel/src/matching.ts': ['libs/kernel/src/decide.spec.ts'],
  'services/authorizer/src/fold/authority-index.ts': ['services/authorizer/src/fold/authority-index-properties.spec.ts'],
  'services/authorizer/src/fold/grant-table.ts': ['services/authorizer/src/fold/authority-index-properties.spec.ts'],
  'services/authorizer/src/fold/held-grants.ts': ['services/authorizer/src/fold/authority-index-properties.spec.ts'],
  'services/authorizer/src/escalations/keep-escalations.ts': ['services/authorizer/src/escalations/resolve-escalation.spec.ts'],
  'services/authorizer/src/escalations/webhook.ts': ['services/authorizer/src/escalations/tell-of-questions.spec.ts'],
  'libs/kernel/src/precedent-key.ts': ['libs/kernel/src/precedent.spec.ts'],
  'libs/runtime/src/mcp/escalation-latch.ts': ['libs/runtime/src/mcp/bridge.spec.ts'],
  'libs/runtime/src/mcp/published.ts': ['libs/runtime/src/mcp/bridge.spec.ts'],
  'libs/runtime/src/mcp/http.ts': ['libs/runtime/src/mcp/transports.spec.ts'],
  ...Object.fromEntries(
    ['model-driver', 'tool-names', 'ask-model', 'guarded-fetch'].map((name) => [
      `libs/runtime/src/model/${name}.ts`,
      ['libs/runtime/src/model/model.spec.ts'],
    ]),
  ),
  'libs/kernel/src/execution.ts': ['libs/kernel/src/operation-calls.spec.ts'],
  'libs/tools/src/mcp/mcp-tools.ts': ['test/attacks/mcp-servers.spec.ts'],
  'libs/tools/src/mcp/stdio-transport.ts': ['test/attacks/mcp-servers.spec.ts'],
  'libs/tools/src/mcp/http-transport.ts': ['test/attacks/mcp-http-servers.spec.ts'],
  'libs/ledger/src/expire-turns.ts': ['libs/ledger/src/memory.spec.ts'],
  'libs/runtime/src/remote/remote-driver.ts': ['libs/runtime/src/remote/remote.spec.ts'],
};

/** First the specs nearest to the file, then all of its package with the oracle: most mutants never need the second. */
const stagesOf = (folder: string, file: string): readonly (readonly string[])[] => {
  const own = join(dirname(file), `${basename(file, '.ts')}.spec.ts`);
  const near = [...(existsSync(join(folder, own)) ? [own] : []), ...(FURTHER[file] ?? [])];
  const wide = file.startsWith('libs/kernel') ? ['libs/kernel/src', 'test/oracle'] : [dirname(file)];
  return near.length === 0 ? [wide] : [near, wide];
};

const tried = async (folder: string, { file, find, replace }: Mutant): Promise<Verdict> => {
  const path = join(folder, file);
  const text = await readFile(path, 'utf8').catch(() => '');
  if (text.split(find).length !== 2) return { verdict: 'not found' };
  await writeFile(
    path,
    text.replace(find, () => replace),
  );
  try {
    for (const specs of stagesOf(folder, file)) {
      const outcome = await runSpecs(folder, specs, RUN_TIMEOUT_MS);
      if (outcome.outcome !== 'passed') return verdictOf(outcome);
    }
    return { verdict: 'survived' };
  } finally {
    await writeFile(path, text);
  }
};

const verdictOf = (outcome: Exclude<SpecsOutcome, { outcome: 'passed' }>): Verdict =>
  outcome.outcome === 'failed' ? { verdict: 'caught', by: outcome.test } : { verdict: 'not run', by: outcome.why };

/** Unbroken, everything must pass: otherwise whatever fails anyway would seem to catch each mutant. */
const baseline = async (folder: string, mutants: readonly Mutant[]): Promise<string | undefined> => {
  const specs = [...new Set(mutants.flatMap(({ file }) => stagesOf(folder, file).flat()))];
  const outcome = await runSpecs(folder, specs, 2 * RUN_TIMEOUT_MS);
  if (outcome.outcome === 'passed') return undefined;
  return outcome.outcome === 'failed' ? outcome.test : outcome.why;
};

const main = async (): Promise<number> => {
  const { values } = parseArgs({
    options: {
      only: { type: 'string' },
      jobs: { type: 'string', default: '2' },
      minutes: { type: 'string', default: '20' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stderr.write(USAGE);
    return 0;
  }
  const only = values.only?.split(',').map(Number);
  const chosen = MUTANTS.map((mutant, index) => ({ mutant, number: index + 1 })).filter(
    ({ number }) => only === undefined || only.includes(number),
  );
  const until = performance.now() + Number(values.minutes) * 60_000;
  const copies = await Promise.all(Array.from({ length: Number(values.jobs) }, privateCopy));
  try {
    const already = await baseline(
      (copies[0] as (typeof copies)[number]).folder,
      chosen.map(({ mutant }) => mutant),
    );
    if (already !== undefined) {
      say(`nothing was broken, and yet it fails: ${already}`);
      return 1;
    }
    const left = [...chosen];
    let bad = 0;
    await Promise.all(
      copies.map(async ({ folder }) => {
        for (let next = left.shift(); next !== undefined; next = left.shift()) {
          const { mutant, number } = next;
          const { verdict, by }: Verdict = performance.now() > until ? { verdict: 'not tried' } : await tried(folder, mutant);
          if (verdict !== 'caught') bad += 1;
          say(`${verdict === 'caught' ? '✓' : '✗'} ${String(number).padStart(3)}  ${verdict.padEnd(9)}  ${mutant.file}: ${mutant.rule}`);
          if (by !== undefined) say(`                    ${by}`);
        }
      }),
    );
    say(`${chosen.length - bad} caught, ${bad} not`);
    return bad === 0 && chosen.length > 0 ? 0 : 1;
  } finally {
    await Promise.all(copies.map((copy) => copy.remove()));
  }
};

process.exitCode = await main();
