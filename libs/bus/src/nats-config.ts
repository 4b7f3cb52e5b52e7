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

/** A password itself, or the environment variable of nats-server that holds it. */
export type BrokerPassword = string | { readonly env: string };

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
  /** Most that all streams together may keep on disk, in bytes; the streams reserve a part of it. Default 64 GiB. */
  readonly storeBytesMax?: number;
}

// The longest subject (three identifiers of 256 characters, each three bytes and base64) with the longest reply inbox.
const CONTROL_LINE_BYTES_MAX = 16 * 1024;

/** Writes the configuration of a nats-server 2.9 or later. The text holds passwords: keep it readable by its owner alone. */
export const renderNatsConfig = (listener: BrokerListener, accounts: BrokerAccounts): string => {
  const { requests, answers, agents } = crossings();
  return `# Generated from the subject table; who may say what is decided there.
server_name: ${quoted(listener.name)}
listen: ${quoted(`${listener.host}:${listener.port}`)}
max_payload: ${PAYLOAD_BYTES_MAX}
max_control_line: ${CONTROL_LINE_BYTES_MAX}

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

/** The longest that a turn, and so a step of it, may last. */
const ANSWER_WITHIN = '600s';

const renderUser = ({ name, password, rights }: BrokerUser): string => `      {
        user: ${quoted(name)}
        password: ${typeof password === 'string' ? quoted(password) : variable(password.env)}
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
