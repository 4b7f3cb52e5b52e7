import { readFile, stat } from 'node:fs/promises';
import { Address, AgentAddress, Id, Purpose, addressKey, encodeName } from '@sharedos/contracts';
import { z } from 'zod';

/** One user of the broker. Its password is in the file, or in the variable that the file names. */
const Credential = z
  .strictObject({ user: z.string().min(1), password: z.string().min(1).optional(), passwordVariable: z.string().min(1).optional() })
  .refine(({ password, passwordVariable }) => (password === undefined) !== (passwordVariable === undefined), {
    message: 'has a password, or the name of a variable that holds it',
  });

const Entry = z.strictObject({
  /** The claims of a token that make its bearer this principal: each exactly this text. */
  claims: z.record(z.string().min(1), z.string().min(1)).refine((claims) => 'sub' in claims, 'must name a sub'),
  namespaceId: Id,
  principal: Address,
  credential: Credential,
  /** Whose resources are meant; the principal's own when absent. */
  owner: Address.optional(),
  /** What tools are used for over HTTP and MCP, where a turn states its own. */
  purpose: Purpose,
  /** The agent that uses tools for the principal. Without one there are no tools here. */
  agent: z.strictObject({ address: AgentAddress, credential: Credential }).optional(),
});

const Entries = z.array(Entry).refine(
  (entries) => {
    const agents = entries.flatMap(({ namespaceId, agent }) =>
      agent === undefined ? [] : [encodeName(namespaceId, agent.address.agentId)],
    );
    return new Set(agents).size === agents.length;
  },
  { message: 'no two identities have the same agent: its steps would reach either of them' },
);

export interface SignIn {
  readonly user: string;
  readonly password: string;
}

/** Whom a token speaks for: a principal of a namespace, with its own user of the broker and no right to speak for another. */
export interface Identity {
  /** Tells identities apart, in tables and in logs; holds no secret. */
  readonly key: string;
  readonly claims: Readonly<Record<string, string>>;
  readonly namespaceId: string;
  readonly principal: Address;
  readonly signIn: SignIn;
  readonly owner: Address | undefined;
  readonly purpose: string;
  readonly agent: { readonly address: AgentAddress; readonly signIn: SignIn } | undefined;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** @throws Error in one line that says what to change. */
export const readIdentities = async (file: string, env: Environment): Promise<readonly Identity[]> => {
  const text = await readFile(file, 'utf8').catch(() => undefined);
  if (text === undefined) throw new Error(`${file} cannot be read`);
  const given = jsonOf(text);
  const identities = identitiesOf(given, file, env);
  const holdsPasswords = (given as z.infer<typeof Entries>).some(
    ({ credential, agent }) => (credential.password ?? agent?.credential.password) !== undefined,
  );
  if (holdsPasswords && ((await stat(file)).mode & 0o077) !== 0)
    throw new Error(`${file} holds passwords and can be read by others: chmod 600`);
  return identities;
};

/**
 * Reads entries, wherever they came from.
 *
 * @param place Names where they are from, in errors.
 * @throws Error in one line that says what to change.
 */
export const identitiesOf = (given: unknown, place: string, env: Environment): readonly Identity[] => {
  const entries = Entries.safeParse(given);
  if (!entries.success) {
    const [issue] = entries.error.issues;
    throw new Error(`${place}: ${issue?.path.join('.') ?? ''} ${issue?.message ?? ''}`);
  }
  const signIn = ({ user, password, passwordVariable }: z.infer<typeof Credential>): SignIn => {
    const known = password ?? env[passwordVariable ?? ''];
    if (known === undefined || known === '') throw new Error(`${passwordVariable} is not set, and ${place} names it`);
    return { user, password: known };
  };
  return entries.data.map(({ credential, agent, claims, ...entry }) => ({
    ...entry,
    key: encodeName(entry.namespaceId, addressKey(entry.principal), ...Object.entries(claims).flat()),
    claims,
    owner: entry.owner,
    signIn: signIn(credential),
    agent: agent === undefined ? undefined : { address: agent.address, signIn: signIn(agent.credential) },
  }));
};

const jsonOf = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};
