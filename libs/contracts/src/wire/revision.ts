import { z } from 'zod';

/**
 * A point in the log: the store's identity and a position in it. Opaque to clients; ordered within one store, and two
 * revisions of different stores have no order.
 */
export const Revision = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,64}@\d{1,16}$/)
  .brand<'Revision'>();
export type Revision = z.infer<typeof Revision>;

export const revisionOf = (storeId: string, position: number): Revision => Revision.parse(`${storeId}@${position}`);

export const positionOf = (revision: Revision, storeId: string): number | undefined => {
  const [store, position] = revision.split('@');
  return store === storeId ? Number(position) : undefined;
};
