import { type KeyObject, createHmac, createPrivateKey, createPublicKey, sign, timingSafeEqual, verify } from 'node:crypto';
import { type ChainHead, type SealedHead, canonicalJson } from '@sharedos/contracts';

/** One key of the proof, as configured: PKCS #8 of a key that may sign, or SubjectPublicKeyInfo of one that has signed; DER, base64url. */
export interface SealKeySetting {
  readonly keyId: string;
  readonly der: string;
}

/** Reads `id:key,id:key`. @returns `undefined` for anything else. */
export const parseSealKeys = (text: string): readonly SealKeySetting[] | undefined => {
  const entries = text.split(',').map((entry) => /^([A-Za-z0-9_.-]{1,64}):([A-Za-z0-9_-]+)$/.exec(entry.trim()));
  return entries.every((entry) => entry !== null) ? entries.map(([, keyId = '', der = '']) => ({ keyId, der })) : undefined;
};

/**
 * The keys that heads are signed with, Ed25519: the first that may sign does, all are known to have signed. To change keys, put a
 * new one first and leave the public part of the old one behind it.
 *
 * @throws When a key cannot be read, is no Ed25519 key, an id comes twice, or none can sign.
 */
export class SealKeys {
  readonly #public: ReadonlyMap<string, KeyObject>;
  readonly #signing: { readonly keyId: string; readonly key: KeyObject };
  readonly #sessionSecret: Buffer;

  constructor(settings: readonly SealKeySetting[]) {
    const keys = settings.map((setting) => ({ keyId: setting.keyId, key: keyOf(setting) }));
    const signing = keys.find(({ key }) => key.type === 'private');
    if (signing === undefined) throw new Error('no key of SHAREDOS_SEAL_KEYS has a private part to sign with');
    if (new Set(keys.map(({ keyId }) => keyId)).size < keys.length) throw new Error('a key id of SHAREDOS_SEAL_KEYS comes twice');
    this.#signing = signing;
    this.#public = new Map(keys.map(({ keyId, key }) => [keyId, key.type === 'private' ? createPublicKey(key) : key]));
    // The replicas share the signing key and nothing else; what it signs of one fixed text is a secret of all of them.
    this.#sessionSecret = sign(null, Buffer.from('sharedos.audit.sessions/1'), signing.key);
  }

  get signingKeyId(): string {
    return this.#signing.keyId;
  }

  seal(head: Omit<ChainHead, 'keyId'>): SealedHead {
    const stated = { ...head, keyId: this.#signing.keyId };
    return { head: stated, signature: sign(null, Buffer.from(canonicalJson(stated)), this.#signing.key).toString('base64url') };
  }

  check(head: ChainHead, signature: string): 'valid' | 'invalid' | 'unknown_key' {
    const key = this.#public.get(head.keyId);
    if (key === undefined) return 'unknown_key';
    return verify(null, Buffer.from(canonicalJson(head)), key, Buffer.from(signature, 'base64url')) ? 'valid' : 'invalid';
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

const keyOf = ({ keyId, der }: SealKeySetting): KeyObject => {
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
