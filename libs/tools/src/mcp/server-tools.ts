import { JsonObj, McpToolName, type McpTool, hashOf } from '@sharedos/contracts';
import { isLargerThan } from '../json-size.ts';

/** A tool as its server tells of it now. `hash` is of its name, its texts, its schemas and its hints. */
export type ServerTool = Omit<McpTool, 'requirement'>;

/** All that a server tells of its tools. `refused` are those that can never be used here, each with the reason. */
export interface ServerTools {
  readonly tools: readonly ServerTool[];
  readonly refused: readonly { readonly name: string; readonly reason: string }[];
  /** Of the usable ones and their hashes: what a person saw, in one word. */
  readonly listHash: string;
}

const HASHED = ['name', 'title', 'description', 'inputSchema', 'outputSchema', 'annotations'];
const SCHEMA_BYTES_MAX = 64 * 1024;
const DESCRIPTION_MAX = 8_192;
const NAME_SHOWN = 64;

/** Reads what a server said, tool by tool: one that cannot be used is named and leaves the others as they are. */
export const readServerTools = (listed: readonly unknown[]): ServerTools => {
  const tools = new Map<string, ServerTool>();
  const refused = new Map<string, string>();
  for (const one of listed) {
    const read = readServerTool(one);
    if ('reason' in read) refused.set(read.name, read.reason);
    else if (tools.has(read.name)) refused.set(read.name, 'the server has two tools of this name');
    else tools.set(read.name, read);
  }
  for (const name of refused.keys()) tools.delete(name);
  const usable = [...tools.values()];
  return {
    tools: usable,
    refused: [...refused].map(([name, reason]) => ({ name, reason })),
    listHash: hashOf(usable.map(({ name, hash }) => [name, hash])),
  };
};

const readServerTool = (given: unknown): ServerTool | { readonly name: string; readonly reason: string } => {
  const parsed = JsonObj.safeParse(given);
  if (!parsed.success) return { name: '?', reason: 'it is no JSON that is taken here' };
  const said = parsed.data;
  const { name, title, description: text, inputSchema, annotations } = said;
  const shown = typeof name === 'string' ? name.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, NAME_SHOWN) : '?';
  const no = (reason: string) => ({ name: shown, reason });
  const named = McpToolName.safeParse(name);
  if (!named.success) return no('its name is none that a tool may have here');
  const description = [text, title, name].find((one): one is string => typeof one === 'string' && one !== '');
  if (description === undefined || description.length > DESCRIPTION_MAX) return no(`its description is longer than ${DESCRIPTION_MAX}`);
  const schema = JsonObj.safeParse(inputSchema);
  if (!schema.success || schema.data['type'] !== 'object') return no('its arguments are not described as an object');
  if (isLargerThan(said, SCHEMA_BYTES_MAX)) return no(`its definition is larger than ${SCHEMA_BYTES_MAX} bytes`);
  const hints = JsonObj.safeParse(annotations ?? {});
  const hint = (key: string): boolean | undefined => {
    const value = hints.success ? hints.data[key] : undefined;
    return typeof value === 'boolean' ? value : undefined;
  };
  const readOnly = hint('readOnlyHint') === true;
  const [destructive, idempotent] = [readOnly ? undefined : hint('destructiveHint'), hint('idempotentHint')];
  return {
    name: named.data,
    description,
    inputSchema: schema.data,
    readOnly,
    ...(destructive === undefined ? {} : { destructive }),
    ...(idempotent === undefined ? {} : { idempotent }),
    hash: hashOf(Object.fromEntries(HASHED.filter((key) => Object.hasOwn(said, key)).map((key) => [key, said[key]]))),
  };
};
