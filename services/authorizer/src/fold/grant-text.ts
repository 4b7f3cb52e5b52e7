import { type Address, type Capability, type CapabilityConstraints, type CapabilityGrant, timestampOf } from '@sharedos/contracts';

/** Of a grant, what columns hold beside its text. */
export interface InColumns {
  readonly issuedAt: number;
  readonly expiresAt: number;
  /** The one principal over whose resources all capabilities are, where there is one. */
  readonly owner: Address | undefined;
}

/** Whatever of a grant is not the same word in every grant, under names of one letter: a million of them are kept. */
interface Packed {
  /** Resource namespace, path, actions, whether all below is meant, and the owner where the column does not say it. */
  readonly c: readonly (readonly [string, readonly string[], readonly string[], 0 | 1, (Address | null)?])[];
  readonly p?: readonly string[];
  readonly n?: string;
  /** The text of an instant, where another one than we would write stands in the grant; 1 where a column has it. */
  readonly x?: string | 1;
  readonly i?: string;
  readonly u?: number;
  readonly d?: number;
  readonly r?: Omit<CapabilityGrant, 'id' | 'namespaceId' | 'subject' | 'issuer' | 'capabilities' | 'constraints' | 'issuedAt'>;
}

type Body = Omit<CapabilityGrant, 'id' | 'namespaceId' | 'subject' | 'issuer'>;

/** Writes what is left of a grant beside id, namespace, subject and issuer. {@link unpackGrant} gives the same grant back. */
export const packGrant = ({ capabilities, constraints, issuedAt, ...rest }: Body, columns: InColumns): string => {
  const { purposes, notBefore, expiresAt, maxUses, delegationDepth } = constraints;
  const packed: Packed = {
    c: capabilities.map(({ resource, actions, scope }) => {
      const short = [resource.namespace, resource.path, actions, scope === 'descendants' ? 1 : 0] as const;
      return columns.owner !== undefined ? short : [...short, resource.owner ?? null];
    }),
    ...(purposes === undefined ? {} : { p: purposes }),
    ...(notBefore === undefined ? {} : { n: notBefore }),
    ...(expiresAt === undefined ? {} : { x: isOurs(expiresAt, columns.expiresAt) ? 1 : expiresAt }),
    ...(isOurs(issuedAt, columns.issuedAt) ? {} : { i: issuedAt }),
    ...(maxUses === undefined ? {} : { u: maxUses }),
    ...(delegationDepth === undefined ? {} : { d: delegationDepth }),
    ...(Object.keys(rest).length === 0 ? {} : { r: rest }),
  };
  return JSON.stringify(packed);
};

export const unpackGrant = (text: string, columns: InColumns): Body => {
  const { c, p, n, x, i, u, d, r } = JSON.parse(text) as Packed;
  const constraints: CapabilityConstraints = {
    ...(p === undefined ? {} : { purposes: [...p] }),
    ...(n === undefined ? {} : { notBefore: n }),
    ...(x === undefined ? {} : { expiresAt: x === 1 ? timestampOf(columns.expiresAt) : x }),
    ...(u === undefined ? {} : { maxUses: u }),
    ...(d === undefined ? {} : { delegationDepth: d }),
  };
  const capabilities = c.map(([namespace, path, actions, isBelow, stated]): Capability => {
    const owner = columns.owner ?? stated ?? undefined;
    return {
      resource: { namespace, path: [...path], ...(owner === undefined ? {} : { owner }) },
      actions: [...actions],
      scope: isBelow === 1 ? 'descendants' : 'exact',
    };
  });
  return { ...r, capabilities, constraints, issuedAt: i ?? timestampOf(columns.issuedAt) };
};

/** Whether {@link timestampOf} would write the instant as this text, which is a timestamp: so it does every one of this length in UTC. */
const isOurs = (text: string, instant: number): boolean => text.length === OUR_LENGTH && text.endsWith('Z') && Number.isFinite(instant);

const OUR_LENGTH = '2026-01-01T12:00:00.000Z'.length;
