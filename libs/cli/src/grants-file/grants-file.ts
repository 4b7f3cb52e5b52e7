import { Action, type Address, JsonObj, NameId, Purpose, Scope } from '@sharedos/contracts';
import { z } from 'zod';
import { InstantWord, PrincipalWord, ResourceWord } from './file-words.ts';

const CapabilityEntry = z.strictObject({
  resource: ResourceWord,
  actions: z.array(Action).nonempty(),
  scope: Scope.default('descendants'),
  /** Whose resource it is, where a parent has several owners. */
  owner: PrincipalWord.optional(),
});

export const GrantEntry = z.strictObject({
  /** A name that stays the same when the grant changes. */
  id: NameId,
  to: PrincipalWord,
  allow: z.array(CapabilityEntry).nonempty(),
  purposes: z.array(Purpose).nonempty().optional(),
  from: InstantWord.optional(),
  expires: InstantWord.optional(),
  'max-uses': z.int().min(1).optional(),
  depth: z.int().min(0).optional(),
  /** The entry, or the grant outside this file, that this one passes on. */
  parent: NameId.optional(),
  metadata: JsonObj.optional(),
});
export type GrantEntry = z.infer<typeof GrantEntry>;

/** Grants as people keep them in git. The order of entries does not matter. */
export const GrantsFile = z.strictObject({
  version: z.literal(1),
  /** Marks what this file issued. Another file of the same namespace has another name. */
  name: NameId,
  /** Refused when it is another than the one that is spoken to. */
  namespace: NameId.optional(),
  /** Who issues what has no parent here; whoever speaks when absent. */
  issuer: PrincipalWord.optional(),
  /** What is revoked when it is not in the file: what the file issued (`own`), or whatever its issuer has issued (`all`). */
  manage: z.enum(['own', 'all']).default('own'),
  grants: z.array(GrantEntry),
});
export type GrantsFile = z.infer<typeof GrantsFile>;

/** Where, in the metadata of a grant, stands which entry of which file it is. */
const FILE_LABEL = 'sharedos.file';

export interface FileLabel {
  readonly file: string;
  readonly entry: string;
}

const Label = z.strictObject({ file: NameId, entry: NameId });

export const labelOf = (metadata: JsonObj | undefined): FileLabel | undefined => {
  const parsed = Label.safeParse(metadata?.[FILE_LABEL]);
  return parsed.success ? parsed.data : undefined;
};

export const labelled = (metadata: JsonObj | undefined, label: FileLabel): JsonObj => ({ ...metadata, [FILE_LABEL]: { ...label } });

export const unlabelled = (metadata: JsonObj | undefined): JsonObj | undefined => {
  if (metadata === undefined) return undefined;
  const { [FILE_LABEL]: _, ...rest } = metadata;
  return Object.keys(rest).length === 0 ? undefined : rest;
};

/** The terms of an entry, but for its id and its label. */
export const termsOfEntry = ({ to, allow, purposes, from, expires, 'max-uses': maxUses, depth }: GrantEntry) => ({
  subject: to as Address,
  capabilities: allow.map(({ resource, actions, scope, owner }) => ({
    resource: owner === undefined ? resource : { ...resource, owner },
    actions: [...actions],
    scope,
  })),
  constraints: {
    ...(purposes === undefined ? {} : { purposes: [...purposes] }),
    ...(from === undefined ? {} : { notBefore: from }),
    ...(expires === undefined ? {} : { expiresAt: expires }),
    ...(maxUses === undefined ? {} : { maxUses }),
    ...(depth === undefined ? {} : { delegationDepth: depth }),
  },
});
