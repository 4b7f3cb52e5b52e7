import { readFile } from 'node:fs/promises';
import { type McpPlace, McpServerName, bounded } from '@sharedos/contracts';
import { ContractError } from '@sharedos/kernel';
import { z } from 'zod';

const text = bounded(z.string(), 1, 4_096);
const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/);

/** A process that owners may have run for them. `{folder}` in an argument or a variable is a folder of that owner and server alone. */
const Program = z.strictObject({
  command: text,
  args: bounded(z.array(text), 0, 64).default([]),
  env: z.record(variable, text).default({}),
  /** Variables that the owner may set, as secrets. No others can be set by anybody but the operator. */
  secrets: bounded(z.array(variable), 0, 64).default([]),
});
export type Program = Readonly<z.infer<typeof Program>>;

const OperatorFile = z.strictObject({
  processes: z.record(McpServerName, Program).default({}),
  /** Origins, such as `https://crm.example`, of the servers that owners may reach. */
  hosts: bounded(z.array(text), 0, 1_024).default([]),
});

/** What the operator lets owners connect to. A principal names an entry; it never states a command, and no host that is not here. */
export interface OperatorList {
  readonly processes: ReadonlyMap<string, Program>;
  readonly origins: ReadonlySet<string>;
}

export const NO_SERVERS: OperatorList = { processes: new Map(), origins: new Set() };

/** @throws ContractError in one line that says what to change. */
export const readOperatorList = async (file: string): Promise<OperatorList> => {
  const text = await readFile(file, 'utf8').catch(() => {
    throw new ContractError(`${file}: cannot be read`);
  });
  let given: unknown;
  try {
    given = JSON.parse(text);
  } catch {
    throw new ContractError(`${file}: is not JSON`);
  }
  const parsed = OperatorFile.safeParse(given);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    throw new ContractError(`${file}: ${issue?.path.map(String).join('.') ?? ''} ${issue?.message ?? ''}`);
  }
  const origins = parsed.data.hosts.map((host) => {
    const origin = originOf(host);
    if (origin === undefined || origin !== host)
      throw new ContractError(`${file}: ${host} is no origin such as https://crm.example, and plain http is for this machine alone`);
    return origin;
  });
  return { processes: new Map(Object.entries(parsed.data.processes)), origins: new Set(origins) };
};

const LOOPBACK = new Set(['127.0.0.1', 'localhost', '[::1]']);

/** The origin of a URL that secrets may be sent to; nothing for one that anybody on the way could read, or that holds a password. */
export const originOf = (text: string): string | undefined => {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  if (url.username !== '' || url.password !== '') return undefined;
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && LOOPBACK.has(url.hostname))) return undefined;
  return url.origin;
};

/** Whether the operator lets owners have a server at a place. */
export const isAllowed = ({ processes, origins }: OperatorList, place: McpPlace): boolean => {
  if (place.kind === 'process') return processes.has(place.process);
  const origin = originOf(place.url);
  return origin !== undefined && origins.has(origin);
};

/** Headers that a request of the protocol has of its own, or that would let it be read as another one. */
const HEADERS_TAKEN =
  /^(?:accept|connection|content-.*|cookie|expect|host|keep-alive|mcp-.*|origin|proxy-.*|te|trailer|transfer-encoding|upgrade|via)$/i;

/** Whether a secret of this name has a use at a place. */
export const isSecretOf = ({ processes }: OperatorList, place: McpPlace, name: string): boolean =>
  place.kind === 'process'
    ? (processes.get(place.process)?.secrets.includes(name) ?? false)
    : /^[A-Za-z0-9-]+$/.test(name) && !HEADERS_TAKEN.test(name);
