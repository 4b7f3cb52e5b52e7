import { dirname, join, resolve } from 'node:path';
import { type Address, type CapabilityGrant, sameAddress } from '@sharedos/contracts';
import { Command } from 'commander';
import { type Invocation, type Terminal, invocationOf } from '../command-line.ts';
import { CommandFailure, EXIT, usageFailure } from '../exit-code.ts';
import { AssertionsFile } from '../grants-file/assertions-file.ts';
import { type Checked, checkAssertions, checkJson, checkText } from '../grants-file/check-assertions.ts';
import { GrantsFile } from '../grants-file/grants-file.ts';
import { planGrants } from '../grants-file/plan-grants.ts';
import { type YamlFile, readYaml } from '../grants-file/read-yaml.ts';
import { principalName } from '../principal-name.ts';
import { grantsOf, withAncestors, withSpeakers } from '../speakers.ts';

export const checkCommand = (terminal: Terminal): Command =>
  new Command('check')
    .description('Check what grants allow and deny against assertions, of the running system or of a file of grants.')
    .requiredOption('-f, --file <assertions.yaml>', 'what has to be allowed and denied')
    .option('--grants <grants.yaml>', 'check this file of grants, without any running system')
    .addHelpText(
      'after',
      `
Examples:
  $ sharedos check -f assertions.yaml
  $ sharedos check -f assertions.yaml --grants grants.yaml

The file:
  version: 1
  grants: grants.yaml             # optional: check this file of grants, without any running system
  assertions:
    - allow: agent:scout
      to: read
      resource: files:notes/plan.md
      for: human:alice            # whose grants are exercised
      purpose: read notes
    - deny: agent:scout
      to: read
      resource: files:private/diary.md
      for: human:alice
      purpose: read notes
      because: no_matching_grant  # optional, as are: owner (whose resource), at (a time)

It decides by the rules that the services decide by. Uses are not counted: a bounded grant counts as unused.
Exit codes: 0 all hold · 1 one does not · 2 a file is wrong · 3 unavailable`,
    )
    .action(async (options: { readonly file: string; readonly grants?: string }, self: Command) => {
      const invocation = invocationOf(terminal, self);
      const file = await readYaml(terminal, options.file, AssertionsFile);
      const { grants } = file.value;
      const beside = grants === undefined ? undefined : join(dirname(resolve(terminal.cwd, options.file)), grants);
      const place = options.grants ?? beside;
      const checked = place === undefined ? await checkRunning(invocation, file) : await checkFile(terminal, file, place);
      invocation.show(checkJson(checked), checkText(checked));
      const wrong = checked.filter(({ holds }) => !holds).length;
      if (wrong > 0)
        throw new CommandFailure(
          EXIT.refused,
          'assertion_failed',
          `${wrong} of ${checked.length} assertions ${wrong === 1 ? 'does' : 'do'} not hold`,
        );
    });

/** A namespace that does not exist yet, with nothing in it but the file. */
const checkFile = async (terminal: Terminal, file: YamlFile<AssertionsFile>, place: string): Promise<readonly Checked[]> => {
  const grants = await readYaml(terminal, place, GrantsFile);
  const { issuer, namespace = file.value.namespace ?? 'check' } = grants.value;
  if (issuer === undefined)
    throw usageFailure(`${grants.at([])}: say who issues the grants (issuer: human:alice), since nobody speaks when a file is checked`);
  const now = Date.now();
  const plan = planGrants(grants, issuer, { namespaceId: namespace, grants: new Map(), taken: new Set() }, 0);
  return checkAssertions(
    file,
    namespace,
    plan.steps.map(({ grant }) => grant),
    now,
  );
};

const checkRunning = (invocation: Invocation, file: YamlFile<AssertionsFile>): Promise<readonly Checked[]> =>
  withSpeakers(invocation, async (speakers) => {
    const { namespace } = file.value;
    if (namespace !== undefined && namespace !== speakers.namespaceId)
      throw usageFailure(`${file.at(['namespace'])}: the file is for the namespace ${namespace}, and this is ${speakers.namespaceId}`);
    const grants = new Map<string, CapabilityGrant>();
    for (const authority of authoritiesOf(file)) {
      if (!speakers.known.some((known) => sameAddress(known, authority)))
        throw usageFailure(`the context has no credentials for ${principalName(authority)}, whose grants an assertion is about`);
      for (const grant of await grantsOf(await speakers.as(authority), 'issuer')) grants.set(grant.id, grant);
    }
    await withAncestors(speakers, grants);
    return checkAssertions(file, speakers.namespaceId, grants.values(), Date.now());
  });

const authoritiesOf = ({ value }: YamlFile<AssertionsFile>): readonly Address[] =>
  value.assertions
    .map((assertion) => assertion.for)
    .filter((one, index, all) => all.findIndex((other) => sameAddress(one, other)) === index);
