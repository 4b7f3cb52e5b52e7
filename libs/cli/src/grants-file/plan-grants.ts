import { type Address, type CapabilityGrant, type GrantTerms, type Instant, canonicalJson, hashOf, sameAddress } from '@sharedos/contracts';
import { composeDerivedGrant, composeRootGrant } from '@sharedos/kernel';
import { principalName } from '../principal-name.ts';
import { isAnswer } from './export-grants.ts';
import { type GrantEntry, type GrantsFile, labelOf, labelled, termsOfEntry, unlabelled } from './grants-file.ts';
import { type YamlFile, wrong } from './read-yaml.ts';

/** What would be done about one grant, and why. */
export type PlanStep =
  | { readonly do: 'keep'; readonly entry: string; readonly grant: CapabilityGrant }
  | {
      readonly do: 'add';
      readonly entry: string;
      readonly grant: CapabilityGrant;
      readonly terms: GrantTerms;
      readonly why: 'new' | 'changed' | 'revoked';
    }
  | { readonly do: 'revoke'; readonly entry?: string; readonly grant: CapabilityGrant; readonly why: 'changed' | 'not in the file' };

export interface GrantsPlan {
  readonly file: string;
  readonly namespaceId: string;
  /** In the order they are to be done: what is added, parents first, then what is revoked. */
  readonly steps: readonly PlanStep[];
  /** Live grants of the issuer that are none of this file's business. */
  readonly others: number;
}

/** What stands in a namespace, as far as the issuers of a file see it. */
export interface Standing {
  readonly namespaceId: string;
  /** By id, the ended ones among them: an id is never used twice. */
  readonly grants: ReadonlyMap<string, CapabilityGrant>;
  /** Ids known to have been used by grants that nobody here sees. */
  readonly taken: ReadonlySet<string>;
}

/**
 * What has to be done so that a namespace holds what a file says, and nothing when it does.
 *
 * An entry's name stays, and a grant never changes: changed content is a new grant under `<name>-<hash of the content>`, and the
 * one before it is revoked. The new one comes first, so nobody who keeps a right loses it in between.
 *
 * @throws CommandFailure naming the line of an entry that could not be issued.
 */
export const planGrants = (file: YamlFile<GrantsFile>, issuer: Address, standing: Standing, at: Instant): GrantsPlan => {
  const { value } = file;
  const names = new Map(value.grants.map((entry, index) => [entry.id, { entry, index }]));
  const planned = new Map<string, CapabilityGrant>();
  const steps: PlanStep[] = [];
  for (const { entry, index } of parentsFirst(file)) {
    const parent = entry.parent === undefined ? undefined : (planned.get(entry.parent) ?? standing.grants.get(entry.parent));
    const step = stepFor(file, { entry, index }, parent, { issuer, standing, at });
    steps.push(step);
    planned.set(entry.id, step.grant);
  }

  const kept = new Set(steps.flatMap((step) => (step.do === 'keep' ? [step.grant.id] : [])));
  let others = 0;
  for (const grant of standing.grants.values()) {
    if (grant.revokedAt !== undefined || kept.has(grant.id)) continue;
    const label = labelOf(grant.metadata);
    const entry = names.has(grant.id) ? grant.id : label?.file === value.name ? label.entry : undefined;
    const claimed = entry === undefined ? undefined : planned.get(entry);
    if (claimed !== undefined && sameAddress(claimed.issuer, grant.issuer))
      steps.push({ do: 'revoke', entry: entry as string, grant, why: 'changed' });
    else if (label?.file === value.name || (value.manage === 'all' && sameAddress(grant.issuer, issuer) && !isAnswer(grant)))
      steps.push({ do: 'revoke', grant, why: 'not in the file' });
    else if (sameAddress(grant.issuer, issuer)) others += 1;
  }
  return { file: value.name, namespaceId: standing.namespaceId, steps, others };
};

interface Indexed {
  readonly entry: GrantEntry;
  readonly index: number;
}

const stepFor = (
  file: YamlFile<GrantsFile>,
  { entry, index }: Indexed,
  parent: CapabilityGrant | undefined,
  { issuer, standing, at }: { readonly issuer: Address; readonly standing: Standing; readonly at: Instant },
): PlanStep => {
  const metadata = labelled(entry.metadata, { file: file.value.name, entry: entry.id });
  const terms = { id: entry.id, ...termsOfEntry(entry), metadata };
  const grant = composed(file, { entry, index }, parent, terms, { issuer, standing, at });
  const content = contentOf(grant);
  const before = [...standing.grants.values()].filter(
    (one) => sameAddress(one.issuer, grant.issuer) && (one.id === entry.id || labelOf(one.metadata)?.entry === entry.id),
  );
  const live = before.filter(({ revokedAt }) => revokedAt === undefined);
  const same = live.find((one) => contentOf(one) === content);
  if (same !== undefined) return { do: 'keep', entry: entry.id, grant: same };
  const id = unusedId(entry.id, content, (one) => standing.grants.has(one) || standing.taken.has(one));
  const why = live.length > 0 ? 'changed' : before.length > 0 ? 'revoked' : 'new';
  return { do: 'add', entry: entry.id, grant: { ...grant, id }, terms: { ...terms, id }, why };
};

const composed = (
  file: YamlFile<GrantsFile>,
  { entry, index }: Indexed,
  parent: CapabilityGrant | undefined,
  terms: GrantTerms,
  { issuer, standing, at }: { readonly issuer: Address; readonly standing: Standing; readonly at: Instant },
): CapabilityGrant => {
  const { namespaceId } = standing;
  if (entry.parent !== undefined && parent === undefined)
    throw wrong([
      `${file.at(['grants', index, 'parent'])}: ${entry.parent} is no entry of this file, and no grant that ${principalName(issuer)} holds`,
    ]);
  // Whoever holds the parent passes it on: of a parent in this file, that is whom it is given to.
  const made =
    parent === undefined
      ? composeRootGrant(terms, { issuer, namespaceId, at })
      : composeDerivedGrant(parent, terms, {
          requestedBy: file.value.grants.some(({ id }) => id === entry.parent) ? parent.subject : issuer,
          at,
          // Whether bounded grants share their budget is a setting of the namespace, which decides when it is applied.
          sharedBudgets: true,
        });
  if (made.ok) return made.value;
  throw wrong([`${file.at(['grants', index])}: ${entry.id} would be refused (${made.error.code}): ${meaningOf(made.error.code, entry)}`]);
};

/** What makes two grants the same: all but id, time of issue, and which file they came from. */
const contentOf = ({ subject, issuer, capabilities, constraints, parentGrantId, metadata }: CapabilityGrant): string =>
  canonicalJson({
    subject,
    issuer,
    capabilities,
    constraints,
    ...(parentGrantId === undefined ? {} : { parentGrantId }),
    ...(unlabelled(metadata) === undefined ? {} : { metadata: unlabelled(metadata) }),
  });

/** The name itself the first time; afterwards the name and the content. The same content a third time, after two ends, counts on. */
const unusedId = (name: string, content: string, isUsed: (id: string) => boolean): string => {
  if (!isUsed(name)) return name;
  for (let round = 0; ; round += 1) {
    const id = `${name}-${hashOf(round === 0 ? content : [content, round]).slice(0, 8)}`;
    if (!isUsed(id)) return id;
  }
};

/** Every entry after the one that it passes on. */
const parentsFirst = (file: YamlFile<GrantsFile>): readonly Indexed[] => {
  const entries = file.value.grants.map((entry, index) => ({ entry, index }));
  const byName = new Map<string, Indexed>();
  for (const one of entries) {
    const other = byName.get(one.entry.id);
    if (other !== undefined)
      throw wrong([
        `${file.at(['grants', one.index, 'id'])}: ${one.entry.id} is already the entry at ${file.at(['grants', other.index, 'id'])}`,
      ]);
    byName.set(one.entry.id, one);
  }
  const ordered: Indexed[] = [];
  const done = new Set<string>();
  const visit = (one: Indexed, below: ReadonlySet<string>): void => {
    if (done.has(one.entry.id)) return;
    if (below.has(one.entry.id)) throw wrong([`${file.at(['grants', one.index, 'parent'])}: ${one.entry.id} would be its own ancestor`]);
    const parent = byName.get(one.entry.parent ?? '');
    if (parent !== undefined) visit(parent, new Set([...below, one.entry.id]));
    done.add(one.entry.id);
    ordered.push(one);
  };
  for (const one of entries) visit(one, new Set());
  return ordered;
};

const meaningOf = (code: string, { parent }: GrantEntry): string =>
  ({
    grant_id_reserved: 'ids that begin with escalation- are those of answers to questions; choose another id',
    identity_mismatch: 'a grant without a parent is over its issuer’s own resources; name the parent that it passes on',
    not_the_holder: `only the holder of ${parent ?? ''} can pass it on`,
    parent_inactive: `${parent ?? ''} was revoked`,
    parent_not_delegable: `${parent ?? ''} may not be passed on: give it a depth`,
    depth_exhausted: `${parent ?? ''} may be passed on fewer times than this asks: state a smaller depth, or none`,
    bounded_parent_not_delegable: `${parent ?? ''} has a bounded number of uses, and such a grant cannot be passed on`,
    capability_not_within_parent: `each resource, action and scope must lie within one capability of ${parent ?? ''}`,
    purpose_not_within_parent: `its purposes must be among those of ${parent ?? ''}`,
    window_not_within_parent: `the time it holds must lie within that of ${parent ?? ''}`,
  })[code] ?? 'the rules of passing on do not allow it';
