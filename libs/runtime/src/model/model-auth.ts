import { readFile } from 'node:fs/promises';
import type { JsonObj } from '@sharedos/contracts';
import { ContractError } from '../errors.ts';
import type { ModelWire } from './model-wire.ts';

/** Something that is renewed: a token of an account, a workload or a session. */
export interface ModelCredential {
  /** How it is presented, for the result's metadata: `bearer`, … Never the token itself. */
  readonly scheme: string;
  readonly issuer: string;
  /** Whether it stands for one account. Which one is nobody's business here. */
  readonly accountScoped: boolean;
  /** The headers of one request, asked for before each; what has expired is renewed by this. */
  headers(signal: AbortSignal): Promise<Readonly<Record<string, string>>>;
  /** The provider refused what {@link headers} gave. Called once for a request, and then the headers are asked for again. */
  renew(signal: AbortSignal): Promise<void>;
}

/** Exactly one of the two. */
export interface ModelAuth {
  readonly apiKey?: string | undefined;
  readonly credential?: ModelCredential | undefined;
}

/** How requests of one driver prove who pays for them. Who pays has no bearing on what the agent may do. */
export interface ResolvedAuth {
  /** For the result's metadata. */
  readonly described: JsonObj;
  headers(signal: AbortSignal): Promise<Readonly<Record<string, string>>>;
  /** Absent where nothing can be renewed. */
  readonly renew?: (signal: AbortSignal) => Promise<void>;
}

/** @throws ContractError unless there is either a key or a credential. The message holds neither. */
export const resolveAuth = (
  { apiKey, credential }: ModelAuth,
  wire: ModelWire,
  configured: Readonly<Record<string, string>> = {},
): ResolvedAuth => {
  if ((apiKey === undefined) === (credential === undefined))
    throw new ContractError('model access', 'it needs a key or a credential, and one');
  if (credential !== undefined) {
    const { scheme, issuer, accountScoped } = credential;
    return {
      described: { scheme, issuer, accountScoped },
      // The credential last: a configured header must not replace who is asking.
      headers: async (signal) => ({ ...lowerCased(configured), ...lowerCased(await credential.headers(signal)) }),
      renew: (signal) => credential.renew(signal),
    };
  }
  const key = apiKey ?? '';
  if (key === '') throw new ContractError('model access', 'the key is empty');
  return {
    described: { scheme: 'api_key', issuer: 'configuration', accountScoped: false },
    headers: async () => ({ ...lowerCased(configured), ...wire.keyHeaders(key) }),
  };
};

const lowerCased = (headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));

/**
 * A bearer token in a file that somebody else keeps fresh, as workload identities do. It is read again for every request, so a renewal
 * has nothing to do but to let the next request read what is there now.
 */
export const tokenFile = (path: string, issuer = 'file'): ModelCredential => ({
  scheme: 'bearer',
  issuer,
  accountScoped: false,
  headers: async (signal) => ({ authorization: `Bearer ${(await readFile(path, { encoding: 'utf8', signal })).trim()}` }),
  renew: async () => undefined,
});
