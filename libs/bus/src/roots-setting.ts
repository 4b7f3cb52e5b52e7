import { Address, sameAddress } from '@sharedos/contracts';
import { z } from 'zod';

/** The principals of each namespace from whom all authority over its management plane and its records comes. */
export type Roots = Readonly<Record<string, readonly Address[]>>;

const RootsText = z.record(z.string(), z.array(Address));

/** Root principals of each namespace, as JSON `{namespace: [principal]}`. */
export const rootsSetting = z
  .string()
  .default('{}')
  .transform((text, context) => {
    try {
      return RootsText.parse(JSON.parse(text));
    } catch {
      context.addIssue({ code: 'custom', message: 'must be JSON of the form {"namespace": [{"kind":"human","userId":"alice"}]}' });
      return z.NEVER;
    }
  });

/** The roots of one namespace; a name that every object has is the name of no namespace. */
export const rootsOf = (roots: Roots, namespaceId: string): readonly Address[] =>
  Object.hasOwn(roots, namespaceId) ? (roots[namespaceId] ?? []) : [];

export const isRoot = (roots: Roots, namespaceId: string, principal: Address): boolean =>
  rootsOf(roots, namespaceId).some((root) => sameAddress(root, principal));
