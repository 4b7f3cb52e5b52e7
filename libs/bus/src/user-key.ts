import { nkeys } from 'nats';

/** A key of one user of the broker. */
export interface UserKey {
  /** Secret. It is what the user is given as its password. */
  readonly seed: string;
  /** What the broker is told. */
  readonly publicKey: string;
}

export const newUserKey = (): UserKey => {
  const pair = nkeys.createUser();
  const seed = new TextDecoder().decode(pair.getSeed());
  const publicKey = pair.getPublicKey();
  pair.clear();
  return { seed, publicKey };
};
