import { type Json, type JsonObj, type McpRequirement, Path, Seg } from '@sharedos/contracts';

/** Why a requirement can be made of no call, or of this one. Names places, never what was found there. */
export class McpRequirementError extends Error {
  override readonly name = 'McpRequirementError';
}

type Part =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'segment' | 'segments'; readonly argument: readonly string[]; readonly spelled: string };

const ARGUMENT = /^\{(\.\.\.)?arguments\.([A-Za-z0-9_-]{1,64}(?:\.[A-Za-z0-9_-]{1,64}){0,7})\}$/;

const partOf = (text: string): Part => {
  const match = ARGUMENT.exec(text);
  if (match !== null) {
    const [, several, place = ''] = match;
    return { kind: several === undefined ? 'segment' : 'segments', argument: place.split('.'), spelled: place };
  }
  if (/[{}]/.test(text) || !Seg.safeParse(text).success) throw new McpRequirementError('a part of the path is no segment and no argument');
  return { kind: 'literal', text };
};

/** The parts of the path that stand before the first argument: every call of the tool is at or below them. */
export const mcpCeiling = ({ path }: McpRequirement): readonly string[] => {
  const parts = path.map(partOf);
  const first = parts.findIndex(({ kind }) => kind !== 'literal');
  return path.slice(0, first === -1 ? path.length : first);
};

/** What is wrong with a requirement of a tool with these arguments; nothing where some call can meet it. */
export const checkMcpRequirement = ({ path, action }: McpRequirement, inputSchema: JsonObj): McpRequirementError | undefined => {
  try {
    if (action === '*') throw new McpRequirementError('a call needs one action');
    for (const part of path.map(partOf)) {
      if (part.kind === 'literal') continue;
      const [first = ''] = part.argument;
      const known = own(inputSchema, 'properties');
      if (own(known, first) === undefined) throw new McpRequirementError(`the tool has no argument ${first}`);
    }
    return undefined;
  } catch (error) {
    if (error instanceof McpRequirementError) return error;
    throw error;
  }
};

/**
 * The path that a call needs, made of its arguments.
 *
 * @throws McpRequirementError where an argument is missing, or is nothing that could name one resource: a value that the server might
 *   read in another way than it is compared here is refused, not cleaned.
 */
export const mcpPath = ({ path }: McpRequirement, args: JsonObj): readonly string[] => {
  const segments = path.map(partOf).flatMap((part) => {
    if (part.kind === 'literal') return [part.text];
    let value: Json | undefined = args;
    for (const key of part.argument) value = own(value, key);
    const text = typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : value;
    if (typeof text !== 'string') throw new McpRequirementError(`the argument ${part.spelled} must be a text or a whole number`);
    if (part.kind === 'segment') return [text];
    // A leading slash is how servers spell their root; any other empty part would be read away by them.
    const parts = text.replace(/^\//, '').split('/');
    return parts.length === 1 && parts[0] === '' ? [] : parts;
  });
  const made = Path.safeParse(segments);
  if (!made.success) throw new McpRequirementError('the arguments make no path of a resource');
  return made.data;
};

const own = (value: Json | undefined, key: string): Json | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.hasOwn(value, key)
    ? (value as { readonly [key: string]: Json })[key]
    : undefined;
