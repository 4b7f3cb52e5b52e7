import { generateKeyPairSync, createPrivateKey, createPublicKey } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** The key that signs a stack's audit proof, and the part of it that readers are given. */
export interface SealKey {
  readonly keyId: string;
  /** PKCS #8 in DER, as base64url. */
  readonly privateKey: string;
  /** SubjectPublicKeyInfo in DER, as base64url. */
  readonly publicKey: string;
}

/** The key kept in a data folder, made at first: heads signed by an earlier run of the stack must stay good. */
export const sealKeyIn = async (folder: string): Promise<SealKey> => {
  const place = join(folder, 'seal-key.der');
  const known = await readFile(place).catch(() => undefined);
  const key =
    known === undefined ? generateKeyPairSync('ed25519').privateKey : createPrivateKey({ key: known, format: 'der', type: 'pkcs8' });
  const der = key.export({ format: 'der', type: 'pkcs8' });
  if (known === undefined) await writeFile(place, der, { mode: 0o600, flag: 'wx' });
  return {
    keyId: 'local',
    privateKey: der.toString('base64url'),
    publicKey: createPublicKey(key).export({ format: 'der', type: 'spki' }).toString('base64url'),
  };
};
