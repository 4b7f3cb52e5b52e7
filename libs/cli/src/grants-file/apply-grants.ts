import type { SharedOS } from '@sharedos/client';
import { type Address, type CapabilityGrant, canonicalJson, hashOf, sameAddress } from '@sharedos/contracts';
import { valueOf } from '../command-line.ts';
import { CommandFailure, EXIT, usageFailure } from '../exit-code.ts';
import { principalName } from '../principal-name.ts';
import { type Speakers, grantsOf } from '../speakers.ts';
import type { GrantsFile } from './grants-file.ts';
import { type GrantsPlan, type PlanStep, type Standing, planGrants } from './plan-grants.ts';
import type { YamlFile } from './read-yaml.ts';

/** Who issues anything of a file: its issuer, and whoever holds a grant that another entry passes on. */
const issuersOf = ({ value }: YamlFile<GrantsFile>, issuer: Address): readonly Address[] => {
  const holders = value.grants.flatMap(({ parent }) => value.grants.filter(({ id }) => id === parent).map(({ to }) => to));
  return [issuer, ...holders].filter((one, index, all) => all.findIndex((other) => sameAddress(one, other)) === index);
};

export const issuerOf = (file: YamlFile<GrantsFile>, speakers: Pick<Speakers, 'speaker' | 'namespaceId'>): Address => {
  const { namespace, issuer } = file.value;
  if (namespace !== undefined && namespace !== speakers.namespaceId)
    throw usageFailure(
      `${file.at(['namespace'])}: the file is for the namespace ${namespace}, and this is ${speakers.namespaceId}; choose another --context`,
    );
  return issuer ?? speakers.speaker;
};

/** Everything that bears on a file: what its issuers have issued and hold. */
const standingFor = async (
  file: YamlFile<GrantsFile>,
  issuer: Address,
  speakers: Speakers,
  taken: ReadonlySet<string>,
): Promise<Standing> => {
  const grants = new Map<string, CapabilityGrant>();
  for (const one of issuersOf(file, issuer)) {
    if (!speakers.known.some((known) => sameAddress(known, one)))
      throw usageFailure(`the context has no credentials for ${principalName(one)}, who has to pass on a grant of this file`);
    const sharedos = await speakers.as(one);
    for (const role of ['issuer', 'subject'] as const) for (const grant of await grantsOf(sharedos, role)) grants.set(grant.id, grant);
  }
  return { namespaceId: speakers.namespaceId, grants, taken };
};

export const planned = async (
  file: YamlFile<GrantsFile>,
  speakers: Speakers,
  taken: ReadonlySet<string> = new Set(),
): Promise<GrantsPlan> => {
  const issuer = issuerOf(file, speakers);
  return planGrants(file, issuer, await standingFor(file, issuer, speakers, taken), Date.now());
};

export const changesOf = ({ steps }: GrantsPlan): readonly Exclude<PlanStep, { do: 'keep' }>[] =>
  steps.filter((step): step is Exclude<PlanStep, { do: 'keep' }> => step.do !== 'keep');

/** Ids that may turn out to have been used by somebody whom the issuer does not see, before a plan is given up. */
const CONFLICTS_MAX = 8;

/**
 * Makes a namespace hold what a file says. The ids of commands follow from what they do, and each run looks at what stands
 * first, so a run that was cut off is finished by the next, and nothing is done twice.
 */
export const applyGrants = async (
  file: YamlFile<GrantsFile>,
  speakers: Speakers,
  onDone: (step: Exclude<PlanStep, { do: 'keep' }>, done: number, of: number) => void,
): Promise<GrantsPlan> => {
  const taken = new Set<string>();
  const done = new Map<string, PlanStep>();
  for (;;) {
    const plan = await planned(file, speakers, taken);
    const changes = changesOf(plan);
    const conflict = await carriedOut(changes, speakers, (step, index) => {
      done.set(`${step.do} ${step.grant.id}`, step);
      onDone(step, index + 1, changes.length);
    });
    if (conflict === undefined) {
      const kept = plan.steps.filter((step) => step.do === 'keep' && !done.has(`add ${step.grant.id}`));
      return { ...plan, steps: [...kept, ...done.values()] };
    }
    taken.add(conflict);
    if (taken.size > CONFLICTS_MAX)
      throw new CommandFailure(
        EXIT.refused,
        'grant_exists',
        `the ids ${[...taken].join(', ')} were all used before: choose another id in the file`,
      );
  }
};

/** @returns An id that was in use all the same: the rest is to be planned anew. */
const carriedOut = async (
  changes: readonly Exclude<PlanStep, { do: 'keep' }>[],
  speakers: Speakers,
  onDone: (step: Exclude<PlanStep, { do: 'keep' }>, index: number) => void,
): Promise<string | undefined> => {
  for (const [index, step] of changes.entries()) {
    const result = await carryOut(await speakers.as(step.grant.issuer), speakers.namespaceId, step);
    if (!result.ok && result.error.kind === 'refused' && result.error.error.code === 'grant_exists') return step.grant.id;
    valueOf(result, { text: `Apply the file again: ${index} of ${changes.length} changes are made, and none is made twice` });
    onDone(step, index);
  }
  return undefined;
};

const carryOut = ({ grants }: SharedOS, namespaceId: string, step: Exclude<PlanStep, { do: 'keep' }>) => {
  const { id, issuer, parentGrantId } = step.grant;
  const commandId = (content: unknown): string => `file-${hashOf(canonicalJson([step.do, namespaceId, issuer, id, content])).slice(0, 32)}`;
  if (step.do === 'revoke') return grants.revoke(id, `grants file: ${step.why}`, commandId(null));
  const { terms } = step;
  return parentGrantId === undefined
    ? grants.issue(terms, commandId(terms))
    : grants.derive(parentGrantId, terms, commandId([parentGrantId, terms]));
};
