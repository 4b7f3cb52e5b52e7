import { PAYLOAD_BYTES_MAX, SERVICE_NAMES, type ServiceName } from '@sharedos/contracts';
import {
  type BrokerPrincipal,
  type Maintainer,
  OPERATOR,
  PROVISIONER,
  type UserRights,
  crossings,
  operatorRights,
  principalRights,
  principalUser,
  provisionerRights,
  serviceRights,
} from './permissions.ts';

/** A password itself, the environment variable of nats-server that holds it, or the public nkeys that may sign in. */
export type BrokerPassword = string | { readonly env: string } | { readonly nkeys: readonly string[] };

export interface BrokerUser {
  readonly name: string;
  readonly password: BrokerPassword;
  readonly rights: UserRights;
}

/** Who may connect, in which account. Data only; {@link renderNatsConfig} writes it down. */
export interface BrokerAccounts {
  readonly core: readonly BrokerUser[];
  readonly edge: readonly BrokerUser[];
}

/** The two accounts of design §4: services and streams in CORE, principals in EDGE. */
export const brokerAccounts = (
  principals: readonly BrokerPrincipal[],
  passwordOf: (user: ServiceName | Maintainer | BrokerPrincipal) => BrokerPassword,
): BrokerAccounts => ({
  core: [
    ...SERVICE_NAMES.map((service) => ({ name: service, password: passwordOf(service), rights: serviceRights(service) })),
    { name: PROVISIONER, password: passwordOf(PROVISIONER), rights: provisionerRights() },
    { name: OPERATOR, password: passwordOf(OPERATOR), rights: operatorRights() },
  ],
  edge: principals.map((entry) => ({
    name: principalUser(entry.namespaceId, entry.principal),
    password: passwordOf(entry),
    rights: principalRights(entry),
  })),
});

export interface BrokerListener {
  /** Name of the server, for monitoring. */
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly storeDir: string;
  /** Files of the server's certificate; without them anybody on the way reads along. */
  readonly tls?: { readonly certificateFile: string; readonly keyFile: string };
  /** Where this one listens for the other servers of a cluster, what they sign in with, and `user:password@host:port` of each. */
  readonly cluster?: {
    readonly name: string;
    readonly port: number;
    readonly routes: readonly string[];
    readonly authorization: { readonly user: string; readonly password: string };
  };
  /** Most that all streams together may keep on disk, in bytes; the streams reserve a part of it. Default 64 GiB. */
  readonly storeBytesMax?: number;
}

// The longest subject (three identifiers of 256 characters, each three bytes and base64) with the longest reply inbox.
const CONTROL_LINE_BYTES_MAX = 16 * 1024;

/** Writes the configuration of a nats-server 2.9 or later. The text holds passwords: keep it readable by its owner alone. */
export const renderNatsConfig = (listener: BrokerListener, accounts: BrokerAccounts): string => {
  const { requests, answers, agents } = crossings();
  const { tls, cluster } = listener;
  return `# Generated from the subject table; who may say what is decided there.
server_name: ${quoted(listener.name)}
listen: ${quoted(`${listener.host}:${listener.port}`)}
max_payload: ${PAYLOAD_BYTES_MAX}
max_control_line: ${CONTROL_LINE_BYTES_MAX}
${tls === undefined ? '' : renderTls(tls)}${cluster === undefined ? '' : renderCluster(cluster)}
jetstream {
  store_dir: ${quoted(listener.storeDir)}
  max_file_store: ${listener.storeBytesMax ?? 64 * 1024 ** 3}
}

accounts {
  CORE {
    jetstream: enabled
    exports: [
${[...requests.map((subject) => `      { service: ${quoted(subject)}, accounts: [EDGE] }`), ...answers.map((subject) => `      { stream: ${quoted(subject)}, accounts: [EDGE] }`)].join('\n')}
    ]
    imports: [
${agents.map((subject) => `      { service: { account: EDGE, subject: ${quoted(subject)} } }`).join('\n')}
    ]
    users: [
${accounts.core.map(renderUser).join('\n')}
    ]
  }
  EDGE {
    exports: [
${agents.map((subject) => `      { service: ${quoted(subject)}, accounts: [CORE] }`).join('\n')}
    ]
    imports: [
${[...requests.map((subject) => `      { service: { account: CORE, subject: ${quoted(subject)} } }`), ...answers.map((subject) => `      { stream: { account: CORE, subject: ${quoted(subject)} } }`)].join('\n')}
    ]
    users: [
${accounts.edge.map(renderUser).join('\n')}
    ]
  }
}
`;
};

const renderTls = ({ certificateFile, keyFile }: NonNullable<BrokerListener['tls']>): string => `tls {
  cert_file: ${quoted(certificateFile)}
  key_file: ${quoted(keyFile)}
}
`;

const renderCluster = ({ name, port, routes, authorization }: NonNullable<BrokerListener['cluster']>): string => `cluster {
  name: ${quoted(name)}
  listen: ${quoted(`0.0.0.0:${port}`)}
  authorization { user: ${quoted(authorization.user)}, password: ${quoted(authorization.password)} }
  routes: [${routes.map((route) => quoted(`nats-route://${route}`)).join(', ')}]
}
`;

/** The longest that a turn, and so a step of it, may last. */
const ANSWER_WITHIN = '600s';

const renderUser = (user: BrokerUser): string =>
  signIns(user)
    .map((signIn) => renderSignIn(signIn, user.rights))
    .join('\n');

/** One for each key that may sign in. They have the same rights, so a key can be changed while the old one still works. */
const signIns = ({ name, password }: BrokerUser): readonly string[] => {
  if (typeof password !== 'string' && 'nkeys' in password) return password.nkeys.map((key) => `nkey: ${quoted(key)} # ${name}`);
  return [`user: ${quoted(name)}\n        password: ${typeof password === 'string' ? quoted(password) : variable(password.env)}`];
};

const renderSignIn = (signIn: string, rights: UserRights): string => `      {
        ${signIn}
        permissions {
          publish { allow: ${listed(rights.publish)} }
          subscribe { allow: ${listed(rights.subscribe)} }${rights.answers === true ? `\n          allow_responses { max: 1, expires: "${ANSWER_WITHIN}" }` : ''}
        }
      }`;

const listed = (subjects: readonly string[]): string => {
  // An absent or empty list means "everything" to the server.
  if (subjects.length === 0) throw new RangeError('a user without a single right would be given all of them');
  return `[\n${subjects.map((subject) => `            ${quoted(subject)}`).join('\n')}\n          ]`;
};

const variable = (name: string): string => {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) throw new RangeError(`not a name of an environment variable: ${name}`);
  return `$${name}`;
};

// Whatever is written here is a subject, a path or a password of ours; a quote in one of them would end the string.
const quoted = (text: string): string => {
  if (/["\\\n\r]/.test(text)) throw new RangeError('a value of the broker configuration holds a quote, a backslash or a line break');
  return `"${text}"`;
};
