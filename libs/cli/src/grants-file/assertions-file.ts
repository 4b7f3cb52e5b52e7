import { Action, Id, NameId, Purpose } from '@sharedos/contracts';
import { z } from 'zod';
import { InstantWord, PrincipalWord, ResourceWord } from './file-words.ts';

export const Assertion = z
  .strictObject({
    /** Who has to be allowed it, … */
    allow: PrincipalWord.optional(),
    /** … or refused. */
    deny: PrincipalWord.optional(),
    to: Action,
    resource: ResourceWord,
    /** Whose grants are exercised. */
    for: PrincipalWord,
    /** Whose resource it is; whose grants they are when absent. */
    owner: PrincipalWord.optional(),
    purpose: Purpose,
    /** When; now when absent. */
    at: InstantWord.optional(),
    /** The code that it has to be refused with; any when absent. */
    because: Id.optional(),
  })
  .refine(({ allow, deny }) => (allow === undefined) !== (deny === undefined), 'says either allow or deny, and who')
  .refine(({ deny, because }) => because === undefined || deny !== undefined, 'says because of what is allowed: only a refusal has a code');
export type Assertion = z.infer<typeof Assertion>;

/** What grants must and must not allow, as people keep it in git beside them. */
export const AssertionsFile = z.strictObject({
  version: z.literal(1),
  /** A file of grants, relative to this one: then no running system is asked. */
  grants: z.string().optional(),
  /** Refused when it is another than the one that is spoken to. */
  namespace: NameId.optional(),
  assertions: z.array(Assertion).nonempty(),
});
export type AssertionsFile = z.infer<typeof AssertionsFile>;
