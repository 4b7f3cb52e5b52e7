import { type PeerCertificate, checkServerIdentity } from 'node:tls';
import { type ConnectionOptions, type TlsOptions, nkeyAuthenticator } from 'nats';

/** Where the broker is, and who connects. */
export interface SignIn {
  /** URLs, `nats://host:port`, or `tls://host:port` where there must be no connection without TLS. */
  readonly servers: string | readonly string[];
  readonly user: string;
  /** The password, or the seed of the user's nkey: then the key signs in, and the seed does not leave this process. */
  readonly pass: string;
  /** Certificates to believe the broker by, in PEM; those of the system when absent. With it there is no connection without TLS. */
  readonly caFile?: string;
}

/** Of a user; its checksum is the library's to judge. */
const SEED = /^SU[A-Z2-7]{56}$/;

/** What the client of the broker is told of it. */
export const signIn = ({ servers, user, pass, caFile }: SignIn): ConnectionOptions => {
  const urls = typeof servers === 'string' ? [servers] : [...servers];
  return {
    servers: urls,
    ...(SEED.test(pass) ? { authenticator: nkeyAuthenticator(new TextEncoder().encode(pass)) } : { user, pass }),
    // Said and not left to the server: whoever is on the way could otherwise say that there is no TLS.
    ...(caFile === undefined && !urls.some((url) => url.startsWith('tls://')) ? {} : { tls: tlsOf(urls.map(hostOf), caFile) }),
  };
};

/** The client hands all of it to TLS, also what its types do not name. */
const tlsOf = (hosts: readonly string[], caFile: string | undefined): TlsOptions => {
  const checked: TlsOptions & { readonly checkServerIdentity: ReturnType<typeof isOneOf> } = {
    checkServerIdentity: isOneOf(hosts),
    ...(caFile === undefined ? {} : { caFile }),
  };
  return checked;
};

/** The client passes on no address that is a number: the certificate is then held against all that it was told to connect to. */
const isOneOf =
  (hosts: readonly string[]) =>
  (host: string, certificate: PeerCertificate): Error | undefined => {
    const mismatch = checkServerIdentity(host, certificate);
    return mismatch === undefined || hosts.some((one) => checkServerIdentity(one, certificate) === undefined) ? undefined : mismatch;
  };

const hostOf = (url: string): string => {
  const { hostname } = new URL(url.includes('://') ? url : `nats://${url}`);
  return hostname.replace(/^\[(.*)\]$/, '$1');
};
