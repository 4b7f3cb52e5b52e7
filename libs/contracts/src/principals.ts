import { z } from 'zod';
import { canonicalJson } from './canonical.ts';
import { Id } from './scalars.ts';

export const HumanAddress = z.strictObject({ kind: z.literal('human'), userId: Id });
export const AgentAddress = z.strictObject({ kind: z.literal('agent'), agentId: Id });
export const GroupAddress = z.strictObject({ kind: z.literal('group'), conversationId: Id });
export const ServiceAddress = z.strictObject({ kind: z.literal('service'), serviceId: Id });

/** A principal: who acts, issues, owns, sends or receives. @see spec/contracts.md §1 */
export const Address = z.discriminatedUnion('kind', [HumanAddress, AgentAddress, GroupAddress, ServiceAddress]);
export type Address = Readonly<z.infer<typeof Address>>;
export type AgentAddress = Readonly<z.infer<typeof AgentAddress>>;

/** Who notices of the system itself are from. No principal is to be given this name. */
export const NOTICE_SENDER = { kind: 'service', serviceId: 'sharedos' } as const satisfies Address;

export const ADDRESS_KINDS = ['human', 'agent', 'group', 'service'] as const;
export type AddressKind = (typeof ADDRESS_KINDS)[number];

/** The identifier of a principal, whatever its kind calls it. */
export const addressId = (address: Address): string => {
  switch (address.kind) {
    case 'human':
      return address.userId;
    case 'agent':
      return address.agentId;
    case 'group':
      return address.conversationId;
    case 'service':
      return address.serviceId;
  }
};

/** Builds the principal of a kind. */
export const addressOf = (kind: AddressKind, id: string): Address => {
  switch (kind) {
    case 'human':
      return { kind, userId: id };
    case 'agent':
      return { kind, agentId: id };
    case 'group':
      return { kind, conversationId: id };
    case 'service':
      return { kind, serviceId: id };
  }
};

/** The path a principal has as a resource: `[kind, id]`. */
export const addressPath = (address: Address): readonly [AddressKind, string] => [address.kind, addressId(address)];

/** Equality of principals: the same canonical JSON, that is the same kind and the same id. */
export const sameAddress = (a: Address, b: Address): boolean => a === b || (a.kind === b.kind && addressId(a) === addressId(b));

/** A principal as one text, usable as a map key; unambiguous because it is canonical JSON. */
export const addressKey = (address: Address): string => canonicalJson(address);
