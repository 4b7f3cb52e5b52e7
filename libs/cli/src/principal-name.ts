import { ADDRESS_KINDS, Address, type Address as AddressType, addressId, addressOf } from '@sharedos/contracts';
import { usageFailure } from './exit-code.ts';

/** `human:alice`: a principal as one writes it on a command line. The id is everything after the first colon. */
export const parsePrincipal = (text: string): AddressType => {
  const colon = text.indexOf(':');
  const kind = ADDRESS_KINDS.find((candidate) => candidate === text.slice(0, Math.max(0, colon)));
  if (kind === undefined)
    throw usageFailure(`"${text}" is not a principal: write <kind>:<id> with a kind of ${ADDRESS_KINDS.join(', ')}, as in human:alice`);
  const address = Address.safeParse(addressOf(kind, text.slice(colon + 1)));
  if (!address.success) throw usageFailure(`"${text}" is not a principal: its id must have 1 to 256 characters`);
  return address.data;
};

export const principalName = (address: AddressType): string => `${address.kind}:${addressId(address)}`;
