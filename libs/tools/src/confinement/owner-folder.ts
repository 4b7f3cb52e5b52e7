import { type Address, addressId, encodeToken, sha256 } from '@sharedos/contracts';

/** Longest name that the usual file systems take, in bytes. */
export const NAME_BYTES_MAX = 255;

/**
 * The folders below a provider's root that hold one owner's files: namespace, kind and id, each one encoded token, so no id can
 * name another owner's folder, whatever it is spelled like.
 *
 * @throws RangeError on an id with a lone surrogate, which has no name.
 */
export const ownerFolder = (namespaceId: string, owner: Address): readonly [string, string, string] => [
  folderToken(namespaceId),
  owner.kind,
  folderToken(addressId(owner)),
];

/**
 * A token too long for a file name becomes `~~` and the hash of its id. No token of the encoder starts so, because base64url has
 * no `~`; splitting it over two folders instead would put one owner's folder inside that of another whose token is its start.
 */
const folderToken = (id: string): string => {
  const token = encodeToken(id);
  return token.length <= NAME_BYTES_MAX ? token : `~~${sha256(id)}`;
};
