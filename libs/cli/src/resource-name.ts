import { Path, type ResourceRef } from '@sharedos/contracts';
import { usageFailure } from './exit-code.ts';

/** `notes/plan.md` as the segments of a path; the empty text is the root. */
export const parsePath = (text: string): string[] => {
  const segments = text.split('/').filter((segment, index, all) => segment !== '' || (index > 0 && index < all.length - 1));
  const path = Path.safeParse(segments);
  if (!path.success) throw usageFailure(`"${text}" is not a path: ${path.error.issues[0]?.message ?? 'wrong'}`);
  return path.data;
};

/** `files:notes`: a resource namespace and a path in it. */
export const parseResource = (text: string): ResourceRef => {
  const colon = text.indexOf(':');
  if (colon < 1)
    throw usageFailure(`"${text}" is not a resource: write <namespace>:<path>, as in files:notes/plan.md, or files: for all of it`);
  return { namespace: text.slice(0, colon), path: parsePath(text.slice(colon + 1)) };
};

export const resourceName = ({ namespace, path }: ResourceRef): string => `${namespace}:${path.join('/')}`;
