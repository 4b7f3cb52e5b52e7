import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type AccessContext, type CapabilityGrant, type JsonObj, type ToolCall, err } from '@sharedos/contracts';
import { SharedOSKernel, type ToolHandler, ToolRegistry } from '@sharedos/kernel';
import { filesProvider, filesTools, mcpTools, ownerFolder } from '@sharedos/tools';
import { ALICE, contextOf } from './kernel-world.ts';
import { type Row, percentile, rowOf } from './rows.ts';
import { oneByOne } from './sampling.ts';

export interface ToolsBenchOptions {
  /** Fewer and shorter rounds: figures to see that it works, not to quote. */
  readonly quick: boolean;
  /** What is being done, line by line. */
  readonly say: (line: string) => void;
}

const PLANS = {
  full: { rounds: 5, readMs: 1_000, searchMs: 4_000, listMs: 1_000 },
  quick: { rounds: 2, readMs: 150, searchMs: 500, listMs: 150 },
} as const;
const FILES = 10_000;
const FILES_A_FOLDER = 100;
const TOOLS = 512;
const MIB = 1024 * 1024;
const QUERY = 'needle';
/** What listing is to be done in, in microseconds. */
const LISTED_WITHIN = 5_000;

/** The tools by themselves, beside the same done bare in the same rounds; starts no server. */
export const benchTools = async ({ quick, say }: ToolsBenchOptions): Promise<readonly Row[]> => {
  const plan = quick ? PLANS.quick : PLANS.full;
  const root = mkdtempSync(join(tmpdir(), 'sharedos-bench-tools-'));
  try {
    say(`writing ${FILES} files …`);
    const folder = join(root, ...ownerFolder('bench', ALICE));
    writeTree(folder);
    const tools = new Map(filesTools(filesProvider({ root })).map((tool) => [tool.definition.name, tool]));
    const kernel = kernelWithTools(TOOLS);
    const kernelOfOwner = kernelWithServers(TOOLS);
    for (const [listed, listing] of [
      [kernel, LISTING],
      [kernelOfOwner, OWN_LISTING],
    ] as const)
      if ((await listed.listTools(listing)).length !== TOOLS) throw new Error('the kernel does not list what was registered');
    const large = join(folder, 'large.txt');
    const works = {
      read: { ms: plan.readMs, work: () => call(tools, 'files.read', { path: ['large.txt'] }) },
      'plain read': { ms: plan.readMs, work: () => readFile(large, 'utf8') },
      search: { ms: plan.searchMs, work: () => call(tools, 'files.search', { path: ['tree'], query: QUERY }) },
      'plain scan': { ms: plan.searchMs, work: async () => plainScan(join(folder, 'tree')) },
      list: { ms: plan.listMs, work: () => kernel.listTools(LISTING) },
      'list of servers': { ms: plan.listMs, work: () => kernelOfOwner.listTools(OWN_LISTING) },
    } as const;
    const figures = new Map<string, number[]>(Object.keys(works).map((name) => [name, []]));
    for (let round = 1; round <= plan.rounds; round += 1) {
      say(`round ${round} of ${plan.rounds} …`);
      for (const [name, { ms, work }] of Object.entries(works)) figures.get(name)?.push(percentile(await oneByOne(ms, work), 50));
    }
    const of = (name: keyof typeof works): readonly number[] => figures.get(name) ?? [];
    return [
      rowOf({
        name: 'files.read, against readFile',
        params: { bytes: MIB },
        unit: 'µs',
        values: of('read'),
        floors: of('plain read'),
        target: 2,
      }),
      rowOf({
        name: 'files.search, against a plain scan',
        params: { files: FILES },
        unit: 'µs',
        values: of('search'),
        floors: of('plain scan'),
        target: 2,
      }),
      rowOf({
        name: 'catalogue listed, against 5 ms',
        params: { tools: TOOLS },
        unit: 'µs',
        values: of('list'),
        floors: of('list').map(() => LISTED_WITHIN),
        target: 1,
      }),
      rowOf({
        name: 'catalogue of MCP servers listed, against 5 ms',
        params: { tools: TOOLS },
        unit: 'µs',
        values: of('list of servers'),
        floors: of('list of servers').map(() => LISTED_WITHIN),
        target: 1,
      }),
    ];
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
};

/** Every hundredth file holds the word; a file is about two kilobytes of text. */
const writeTree = (folder: string): void => {
  const text = 'the quick brown fox jumps over the lazy dog, and nobody minds\n'.repeat(32);
  for (let index = 0; index < FILES; index += 1) {
    const at = join(folder, 'tree', `folder-${Math.floor(index / FILES_A_FOLDER)}`);
    if (index % FILES_A_FOLDER === 0) mkdirSync(at, { recursive: true });
    writeFileSync(join(at, `file-${index}.txt`), index % 100 === 0 ? `${text}a ${QUERY} here\n` : text);
  }
  writeFileSync(join(folder, 'large.txt'), text.repeat(Math.ceil(MIB / text.length)).slice(0, MIB));
};

/** What a script would do: read every file, letter case ignored, and keep the lines that hold the word. */
const plainScan = (folder: string): number => {
  let lines = 0;
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.txt')) continue;
    const text = readFileSync(join(folder, name), 'utf8');
    if (text.toLowerCase().includes(QUERY)) lines += text.split('\n').filter((line) => line.toLowerCase().includes(QUERY)).length;
  }
  return lines;
};

const call = async (tools: ReadonlyMap<string, ToolHandler>, name: string, raw: JsonObj): Promise<void> => {
  const tool = tools.get(name);
  if (tool === undefined) throw new Error(`no tool ${name}`);
  const context: AccessContext = contextOf();
  const asked: ToolCall = {
    id: 'call',
    tool: name,
    arguments: tool.parseArguments(raw) as JsonObj,
    traceId: context.traceId,
    requestedAt: context.now,
  };
  const result = await tool.invoke(context, asked, new AbortController().signal);
  if (result.status !== 'succeeded') throw new Error(`${name} was refused`);
};

const grantOf = (namespace: string, action: string): CapabilityGrant => {
  const { namespaceId, actor, authority } = contextOf();
  return {
    id: 'all',
    namespaceId,
    subject: actor,
    issuer: authority,
    capabilities: [{ resource: { namespace, path: [] }, actions: [action], scope: 'descendants' }],
    constraints: {},
    issuedAt: '2026-01-01T09:00:00Z',
  };
};

/** A kernel with so many tools, all of them granted, each with a schema as large as that of a files tool. */
const kernelWithTools = (count: number): SharedOSKernel => {
  const kernel = new SharedOSKernel({ grantSource: { load: async () => [grantOf('bench', 'use')] } });
  const [like] = filesTools(filesProvider({ root: tmpdir() }));
  if (like === undefined) throw new Error('there is no tool to go by');
  for (let index = 0; index < count; index += 1) {
    const definition = {
      ...like.definition,
      name: `bench.tool-${index}`,
      namespace: 'bench',
      requiredCapability: { resource: { namespace: 'bench', path: [] }, action: 'use' },
    };
    kernel.registerTool({ ...like, definition });
  }
  return kernel;
};

/** The same with the approved tools of an owner's MCP servers, which come from a provider for each turn. */
const kernelWithServers = (count: number): SharedOSKernel => {
  const { namespaceId, owner } = contextOf();
  const place = { kind: 'process', process: 'bench' } as const;
  const inputSchema = { type: 'object', properties: { customerId: { type: 'string' } }, required: ['customerId'] };
  const tools = Array.from({ length: count }, (_, index) => ({
    name: `read-${index}`,
    description: 'Reads a customer.',
    inputSchema,
    readOnly: true,
    hash: 'a'.repeat(64),
    requirement: { path: ['customers', '{arguments.customerId}'], action: 'read' },
  }));
  const pool = { connection: async () => err('mcp_server_unavailable' as const) };
  const own = { namespaceId, owner, server: 'bench', place };
  // Kept from turn to turn, as an executor keeps them until its owner changes something.
  const registry = new ToolRegistry();
  for (const tool of mcpTools({ pool, onChanged: () => undefined }, own, { server: 'bench', place, tools, changed: [] }))
    registry.register(tool);
  const kernel = new SharedOSKernel({ grantSource: { load: async () => [grantOf('mcp', 'read')] } });
  kernel.registerToolProvider({ id: 'mcp', listTools: async () => registry.handlers() });
  return kernel;
};

const LISTING = { ...contextOf(), enabledToolNamespaces: ['bench'] };
const OWN_LISTING = { ...contextOf(), enabledToolNamespaces: ['mcp'] };
