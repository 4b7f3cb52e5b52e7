import { type KeyObject, createHmac, createPrivateKey, createPublicKey, sign, timingSafeEqual } from 'node:crypto';
import {
  type ChainHead,
  type NamedKey,
  type SealedHead,
  type SignatureCheck,
  canonicalJson,
  namedKeyOf,
  signatureCheck,
  signedBytes,
} from '@sharedos/contracts';

/** Reads `id:key,id:key`. @returns `undefined` for anything else. */
export const parseSealKeys = (text: string): readonly NamedKey[] | undefined => {
  const keys = text.split(',').map(namedKeyOf);
  return keys.every((key) => key !== undefined) ? keys : undefined;
};

/**
 * The keys that heads are signed with, Ed25519, each as PKCS #8 where it may sign and as SubjectPublicKeyInfo where it has: the first that may sign does, all are known to have signed. To change keys, put a
 * new one first and leave the public part of the old one behind it.
 *
 * @throws When a key cannot be read, is no Ed25519 key, an id comes twice, or none can sign.
 */
export class SealKeys {
  /** Whether one of the keys signed a head. */
  readonly check: SignatureCheck;
  readonly #signing: { readonly keyId: string; readonly key: KeyObject };
  readonly #sessionSecret: Buffer;

  constructor(settings: readonly NamedKey[]) {
    const keys = settings.map((setting) => ({ keyId: setting.keyId, key: keyOf(setting) }));
    const signing = keys.find(({ key }) => key.type === 'private');
    if (signing === undefined) throw new Error('no key of SHAREDOS_SEAL_KEYS has a private part to sign with');
    if (new Set(keys.map(({ keyId }) => keyId)).size < keys.length) throw new Error('a key id of SHAREDOS_SEAL_KEYS comes twice');
    this.#signing = signing;
    this.check = signatureCheck(new Map(keys.map(({ keyId, key }) => [keyId, key.type === 'private' ? createPublicKey(key) : key])));
    // The replicas share the signing key and nothing else; what it signs of one fixed text is a secret of all of them.
    this.#sessionSecret = sign(null, Buffer.from('sharedos.audit.sessions/1'), signing.key);
  }

  seal(head: Omit<ChainHead, 'keyId'>): SealedHead {
    const stated = { ...head, keyId: this.#signing.keyId };
    return { head: stated, signature: sign(null, signedBytes(stated), this.#signing.key).toString('base64url') };
  }

  /** A short text that only the replicas could have written. */
  sessionOf(claims: unknown): string {
    const payload = Buffer.from(canonicalJson(claims)).toString('base64url');
    return `${payload}.${this.#mac(payload).toString('base64url')}`;
  }

  /** @returns The claims of a text that a replica wrote, or `undefined`. */
  claimsOf(session: string): unknown {
    const [payload = '', mac = ''] = session.split('.');
    const given = Buffer.from(mac, 'base64url');
    const expected = this.#mac(payload);
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
    return JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'));
  }

  #mac(payload: string): Buffer {
    return createHmac('sha256', this.#sessionSecret).update(payload).digest();
  }
}

const keyOf = ({ keyId, der }: NamedKey): KeyObject => {
  const key = Buffer.from(der, 'base64url');
  const read =
    readAs(() => createPrivateKey({ key, format: 'der', type: 'pkcs8' })) ??
    readAs(() => createPublicKey({ key, format: 'der', type: 'spki' }));
  if (read === undefined) throw new Error(`the key "${keyId}" of SHAREDOS_SEAL_KEYS cannot be read`);
  if (read.asymmetricKeyType !== 'ed25519') throw new Error(`the key "${keyId}" of SHAREDOS_SEAL_KEYS is no Ed25519 key`);
  return read;
};

/** What the library says of a key it cannot read may hold a part of it, so it goes no further. */
const readAs = (read: () => KeyObject): KeyObject | undefined => {
  try {
    return read();
  } catch {
    return undefined;
  }
};
