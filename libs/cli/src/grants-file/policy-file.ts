import { Action, type Address, DailyWindow, Id, NameId, Purpose } from '@sharedos/contracts';
import { z } from 'zod';
import { parsePath } from '../resource-name.ts';
import { PrincipalWord, written } from './file-words.ts';

const Forbid = z
  .strictObject({
    namespaces: z.array(Id).nonempty().optional(),
    path: written(parsePath).optional(),
    actions: z.array(Action).nonempty().optional(),
    actors: z.array(PrincipalWord).nonempty().optional(),
    purposes: z.array(Purpose).nonempty().optional(),
    daily: DailyWindow.optional(),
  })
  .refine((rule) => Object.keys(rule).length > 0, 'says nothing: it would forbid everything; to mean that, write "freeze: everybody"');

const Rule = z
  .strictObject({
    id: NameId,
    forbid: Forbid.optional(),
    freeze: z.union([z.literal('everybody'), PrincipalWord]).optional(),
    reason: z.string().optional(),
  })
  .refine(({ forbid, freeze }) => (forbid === undefined) !== (freeze === undefined), 'says either forbid or freeze');

/** A policy as people keep it: rules in words, or the source of another language as it is. */
export const PolicyFile = z.union([
  z.strictObject({ version: z.literal(1), rules: z.array(Rule) }),
  z.strictObject({ version: z.literal(1), language: z.string(), source: z.json() }),
]);
export type PolicyFile = z.infer<typeof PolicyFile>;

/** The document on the wire, to be held to its own schema. */
export const documentOf = (file: PolicyFile): unknown => {
  if ('language' in file) return { language: file.language, source: file.source };
  const rules = file.rules.map(({ id, forbid, freeze, reason }) => ({
    id,
    ...(reason === undefined ? {} : { reason }),
    ...(forbid === undefined
      ? { effect: 'freeze', ...(freeze === 'everybody' ? {} : { actor: freeze as Address }) }
      : { effect: 'forbid', ...forbid }),
  }));
  return { language: 'sharedos.rules/1', rules };
};
