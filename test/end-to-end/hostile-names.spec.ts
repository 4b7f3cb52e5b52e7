import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BrokerPrincipal } from '@sharedos/bus';
import { type ClientError, type ScriptedCall, type TurnAnswer, newTurn } from '@sharedos/client';
import {
  type Address,
  type AgentAddress,
  type AuditEvent,
  type JsonObj,
  Seg,
  addressKey,
  addressOf,
  addressPath,
} from '@sharedos/contracts';
import { waitFor } from '@sharedos/testing';
import { ownerFolder } from '@sharedos/tools';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { changedPaths, folderSnapshot } from '../support/folder-snapshot.ts';
import { ALICE, BOB, NAMESPACE, PRINCIPALS, SCOUT, type TestSystem, startTestSystem } from '../support/test-system.ts';

const HOSTILE_IDS = [
  'a.b',
  '*',
  '>',
  '../x',
  'a b',
  '🦊',
  'x'.repeat(250),
  '🦊'.repeat(62),
  '/etc/passwd',
  'a\u0000b',
  '~Kg',
  '__proto__',
  'constructor',
  'CON',
  // One letter, twice: composed and decomposed. No file system, key or subject may fold them together.
  '\u00e9',
  'e\u0301',
] as const;

const named = (id: string): string => JSON.stringify(id.length > 40 ? `${id.slice(0, 4)}… of ${Buffer.byteLength(id)} bytes` : id);
const CASES = HOSTILE_IDS.map((id, index) => ({ id, index, what: named(id) }));

/** Pairs of namespace and id whose parts join to one text when a dot, a slash or nothing is put between them. */
const AMBIGUOUS = [
  { namespaceId: 'a', id: 'b.c' },
  { namespaceId: 'a.b', id: 'c' },
  { namespaceId: 'a', id: 'b' },
  { namespaceId: 'a.human', id: 'b' },
  { namespaceId: 'ab', id: 'c' },
  { namespaceId: 'a', id: 'bc' },
  { namespaceId: 'a/human', id: 'b' },
] as const;

const human = (userId: string): Address => ({ kind: 'human', userId });
const OWNER = human('owner');

const HOSTILE_PRINCIPALS: readonly BrokerPrincipal[] = [
  ...HOSTILE_IDS.map((id) => ({ namespaceId: NAMESPACE, principal: human(id) })),
  ...HOSTILE_IDS.map((id) => ({ namespaceId: NAMESPACE, principal: addressOf('agent', id) })),
  ...HOSTILE_IDS.map((id) => ({ namespaceId: id, principal: OWNER })),
  ...AMBIGUOUS.map(({ namespaceId, id }) => ({ namespaceId, principal: human(id) })),
  { namespaceId: '*', principal: human('listener'), auditor: true },
  { namespaceId: '>', principal: human('listener'), auditor: true },
];

let system: TestSystem;
let outside: string;
beforeAll(async () => {
  system = await startTestSystem({ principals: [...PRINCIPALS, ...HOSTILE_PRINCIPALS] });
  outside = await mkdtemp(join(tmpdir(), 'sharedos-outside-'));
  await writeFile(join(outside, 'secret.txt'), 'the secret outside');
});
afterAll(async () => {
  await system?.stop();
  await rm(outside, { recursive: true, force: true });
});

const snapshot = () => folderSnapshot(system.stack.filesRoot);

/** Writes one file of its own for a principal, and says where its folder is below the root. */
const givenFile = async (namespaceId: string, owner: Address, content: string): Promise<string> => {
  const folder = join(...ownerFolder(namespaceId, owner));
  await mkdir(join(system.stack.filesRoot, folder), { recursive: true });
  await writeFile(join(system.stack.filesRoot, folder, 'own.txt'), content);
  return folder;
};

/** Lets `agent` do all with the files of `principal`, which issues both grants itself. */
const givenGrants = async (
  namespaceId: string,
  principal: Address,
  agent: Address,
  ids: readonly [string, string],
  files: { maxUses?: number } = {},
): Promise<void> => {
  const { grants } = await system.client(principal, namespaceId);
  const terms = [
    {
      id: ids[0],
      subject: agent,
      capabilities: [
        { resource: { namespace: 'sharedos.execution', path: [...addressPath(agent)] }, actions: ['invoke'], scope: 'exact' as const },
      ],
    },
    {
      id: ids[1],
      subject: agent,
      capabilities: [{ resource: { namespace: 'files', path: [] }, actions: ['*'], scope: 'descendants' as const }],
      constraints: files,
    },
  ];
  for (const grant of terms)
    expect(await grants.issue(grant)).toMatchObject({ ok: true, value: { grant: { issuer: principal, namespaceId } } });
};

const runTurn = async (
  namespaceId: string,
  from: Address,
  agent: AgentAddress,
  calls: readonly ScriptedCall[],
  more: { executionId?: string; owner?: Address; traceId?: string } = {},
): Promise<TurnAnswer> => {
  const submitted = await (
    await system.client(from, namespaceId)
  ).turns.submit(newTurn({ from, agent, purpose: 'testing', calls, ...more }));
  if (!submitted.ok) throw new Error(JSON.stringify(submitted.error));
  const answer = await submitted.value.result;
  if (!answer.ok) throw new Error(JSON.stringify(answer.error));
  return answer.value;
};

/** How each call was answered: its output, or status and code. */
const answers = ({ result }: TurnAnswer): readonly unknown[] => {
  if (result.status !== 'succeeded')
    throw new Error(`the turn ended ${result.status}: ${JSON.stringify('error' in result ? result.error : undefined)}`);
  const { calls } = result.output as unknown as { calls: { status: string; code?: string; output?: unknown }[] };
  return calls.map(({ status, code, output }) => (status === 'succeeded' ? output : `${status} ${code}`));
};

const call = (tool: string, args: JsonObj): ScriptedCall => ({ tool, arguments: args });
const OWN_FILE = call('files.read', { path: ['own.txt'] });
const LIST = call('files.list', { path: [] });
const MAKE = call('files.create', { path: ['made.txt'], content: 'made' });

interface Hostile {
  readonly what: string;
  readonly namespaceId: string;
  readonly principal: Address;
  readonly grantIds: readonly [string, string];
}

const HOSTILE: readonly Hostile[] = CASES.flatMap(({ id, index, what }) => [
  // The ids of grants are hostile as well, and lie in one namespace.
  { what: `human ${what}`, namespaceId: NAMESPACE, principal: human(id), grantIds: [`${id} run`, `${index}/${id}`] },
  { what: `agent ${what}`, namespaceId: NAMESPACE, principal: addressOf('agent', id), grantIds: [`agent ${id}`, `agent ${index}`] },
  { what: `namespace ${what}`, namespaceId: id, principal: OWNER, grantIds: ['run', 'files'] },
]);

const contentOf = ({ namespaceId, principal }: Hostile): string => `of ${addressKey(principal)} in ${JSON.stringify(namespaceId)}`;

const AT_ONCE = 12;

/** Does the same for each, some at a time, and says for each by name what came of it. */
const forEach = async <T extends { readonly what: string }>(
  all: readonly T[],
  act: (one: T) => Promise<unknown>,
): Promise<Readonly<Record<string, unknown>>> => {
  const waiting = all.map((one) => [one.what, one] as const);
  const found: Record<string, unknown> = {};
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) found[next[0]] = await act(next[1]);
    }),
  );
  return found;
};

const each = <T extends { readonly what: string }>(all: readonly T[], expected: (one: T) => unknown): Readonly<Record<string, unknown>> =>
  Object.fromEntries(all.map((one) => [one.what, expected(one)]));

const codeOf = (answer: { readonly ok: true } | { readonly ok: false; readonly error: ClientError }): string =>
  answer.ok ? 'ok' : answer.error.kind === 'refused' ? answer.error.error.code : `${answer.error.kind}: ${answer.error.reason}`;

const deniedWith = ({ result }: TurnAnswer): string => `${result.status} ${'error' in result ? result.error?.code : ''}`;

/** The same execution for everybody: nobody is answered with, or stopped by, that of another. */
const SAME_EXECUTION = 'the same.execution';

describe('principals and namespaces of hostile names', () => {
  it('grant, run and write, each in its own folder alone', async () => {
    const folders = new Map<string, string>();
    for (const one of HOSTILE) folders.set(one.what, await givenFile(one.namespaceId, one.principal, contentOf(one)));
    await forEach(HOSTILE, ({ namespaceId, principal, grantIds }) => givenGrants(namespaceId, principal, SCOUT, grantIds));
    const before = await snapshot();
    const found = await forEach(HOSTILE, async ({ namespaceId, principal }) =>
      answers(await runTurn(namespaceId, principal, SCOUT, [OWN_FILE, LIST, MAKE], { executionId: SAME_EXECUTION })),
    );
    expect(found).toMatchObject(
      each(HOSTILE, (one) => [{ content: contentOf(one) }, { entries: [{ name: 'own.txt' }], truncated: false }, { size: 4 }]),
    );
    expect(changedPaths(before, await snapshot())).toEqual(
      [...folders.values()].flatMap((folder) => [folder, join(folder, 'made.txt')]).sort(),
    );
  }, 60_000);

  it('see their own turn and their own grants', async () => {
    const found = await forEach(HOSTILE, async ({ namespaceId, principal }) => {
      const { turns, grants } = await system.client(principal, namespaceId);
      const [own, listed, issued] = [await turns.get(SAME_EXECUTION), await turns.list(), await grants.list({ role: 'issuer' })];
      return {
        content: own.ok && own.value.result !== undefined ? answers({ result: own.value.result })[0] : own,
        turns: listed.ok ? listed.value.map(({ executionId, state }) => [executionId, state]) : listed.error,
        grants: issued.ok ? issued.value.grants.map(({ id }) => id).sort() : issued.error,
      };
    });
    expect(found).toMatchObject(
      each(HOSTILE, (one) => ({
        content: { content: contentOf(one) },
        turns: [[SAME_EXECUTION, 'succeeded']],
        grants: [...one.grantIds].sort(),
      })),
    );
  }, 60_000);

  it('get nothing of alice, and alice nothing of them', async () => {
    const inDemo = HOSTILE.filter(({ namespaceId }) => namespaceId === NAMESPACE);
    const found = await forEach(inDemo, async (one) => {
      const { grants, turns } = await system.client(one.principal);
      const other = inDemo[(inDemo.indexOf(one) + 2) % inDemo.length]?.grantIds[0] ?? '';
      return [
        deniedWith(await runTurn(NAMESPACE, one.principal, SCOUT, [LIST], { owner: ALICE })),
        deniedWith(await runTurn(NAMESPACE, ALICE, SCOUT, [LIST], { owner: one.principal })),
        codeOf(await grants.get(other)),
        codeOf(await grants.revoke(other)),
        codeOf(await turns.get('an execution of nobody')),
      ];
    });
    expect(found).toEqual(
      each(inDemo, () => ['denied no_matching_grant', 'denied no_matching_grant', 'grant_not_found', 'not_the_issuer', 'turn_not_found']),
    );
  }, 60_000);

  it('has a folder of its own, and none lies inside another', () => {
    const folders = HOSTILE_PRINCIPALS.map(({ namespaceId, principal }) => ownerFolder(namespaceId, principal).join('/'));
    expect(new Set(folders).size).toBe(folders.length);
    for (const folder of folders) {
      expect(folder.split('/')).toHaveLength(3);
      expect(folders.filter((other) => other.startsWith(`${folder}/`))).toEqual([]);
    }
  });
});

describe('an agent of a hostile name', () => {
  // What the path of a resource can say, so that an invoke grant can name the agent.
  const speakable = CASES.filter(({ id }) => Seg.safeParse(id).success);
  const unspeakable = CASES.filter((one) => !speakable.includes(one));

  it('runs under the grants of that very name, and of none that only resembles it', async () => {
    await givenFile(NAMESPACE, BOB, 'of bob');
    const found = await forEach(speakable, async ({ id, index }) => {
      const agent: AgentAddress = { kind: 'agent', agentId: id };
      await givenGrants(NAMESPACE, BOB, agent, [`bob runs ${index}`, `bob for ${index}`]);
      const lookalike: AgentAddress = { kind: 'agent', agentId: `${id.slice(0, 200)}x` };
      return [answers(await runTurn(NAMESPACE, BOB, agent, [OWN_FILE])), deniedWith(await runTurn(NAMESPACE, BOB, lookalike, [OWN_FILE]))];
    });
    expect(found).toMatchObject(each(speakable, () => [[{ content: 'of bob' }], 'denied no_matching_grant']));
  }, 60_000);

  it('can be named by no grant when a path cannot say it, and its turn is refused, however wide the grant', async () => {
    const found = await forEach(unspeakable, async ({ id }) => {
      const agent: AgentAddress = { kind: 'agent', agentId: id };
      const { grants, turns } = await system.client(BOB);
      const resource = { namespace: 'sharedos.execution', path: [...addressPath(agent)] };
      const exact = await grants.issue({
        id: `unspeakable ${id}`,
        subject: agent,
        capabilities: [{ resource, actions: ['invoke'], scope: 'exact' }],
      });
      await system.grant(
        `all agents ${id}`,
        { namespace: 'sharedos.execution', path: ['agent'], actions: ['*'] },
        { from: BOB, to: agent },
      );
      const submitted = await turns.submit(newTurn({ from: BOB, agent, purpose: 'testing', calls: [OWN_FILE] }), {
        resultTimeoutMs: 10_000,
      });
      return [codeOf(exact), submitted.ok ? codeOf(await submitted.value.result) : submitted.error];
    });
    expect(found).toEqual(each(unspeakable, () => ['invalid_request', 'invalid_request']));
  }, 60_000);

  it('is told apart from one whose name has another half of a surrogate pair', async () => {
    const [high, other] = ['\ud83e', '\ud83f'].map((agentId): AgentAddress => ({ kind: 'agent', agentId })) as [AgentAddress, AgentAddress];
    await givenGrants(NAMESPACE, BOB, high, ['bob runs half', 'bob for half']);
    expect((await runTurn(NAMESPACE, BOB, other, [OWN_FILE])).result).toMatchObject({
      status: 'denied',
      error: { code: 'no_matching_grant' },
    });
  });
});

describe('namespaces and ids that join to one text', () => {
  it('are kept apart in folders, grants, the ledger, and the uses of a grant', async () => {
    const agent = SCOUT;
    for (const { namespaceId, id } of AMBIGUOUS) {
      const principal = human(id);
      await givenFile(namespaceId, principal, `of ${id} in ${namespaceId}`);
      // The ids of the grants are the ambiguous part of the counters: `a` + `b.c uses` and `a.b` + `c uses`.
      await givenGrants(namespaceId, principal, agent, [`${id}.run`, `${id}.uses`], { maxUses: 1 });
    }
    for (const { namespaceId, id } of AMBIGUOUS) {
      const principal = human(id);
      const answer = await runTurn(namespaceId, principal, agent, [OWN_FILE, OWN_FILE], { executionId: SAME_EXECUTION });
      expect(answers(answer)).toMatchObject([{ content: `of ${id} in ${namespaceId}` }, 'denied tool_unavailable']);
      const { turns } = await system.client(principal, namespaceId);
      expect(await turns.list()).toMatchObject({ ok: true, value: [{ executionId: SAME_EXECUTION }] });
      const own = await turns.get(SAME_EXECUTION);
      expect(own.ok ? own.value.result : own.error).toEqual(answer.result);
    }
  });

  it('are kept apart in messages', async () => {
    for (const { namespaceId, id } of AMBIGUOUS) {
      const { messages, grants } = await system.client(human(id), namespaceId);
      const to = { namespace: 'sharedos.messaging', path: ['human'] };
      await grants.issue({
        id: `${id}.send`,
        subject: human(id),
        capabilities: [{ resource: to, actions: ['send'], scope: 'descendants' }],
      });
      const receiver = human(id);
      const sent = await messages.send({ id: 'the same message', receiver, purpose: 'testing', payload: `to ${id} in ${namespaceId}` });
      expect(sent).toMatchObject({ ok: true, value: { status: 'accepted' } });
    }
    for (const { namespaceId, id } of AMBIGUOUS) {
      const inbox = await (await system.client(human(id), namespaceId)).messages.inbox();
      expect(inbox.ok ? inbox.value.map(({ message }) => message.payload) : inbox.error).toEqual([`to ${id} in ${namespaceId}`]);
    }
  });
});

describe('an auditor of a namespace named like a wildcard', () => {
  it.each(['*', '>'])('hears the records of that namespace and of no other: %s', async (namespaceId) => {
    const heard: AuditEvent[] = [];
    const tailing = await (
      await system.client(human('listener'), namespaceId)
    ).audit.tail({ onRecord: (event) => void heard.push(event), onGap: () => undefined });
    expect(tailing.ok).toBe(true);
    await runTurn(NAMESPACE, human('🦊'), SCOUT, [OWN_FILE]);
    await runTurn(namespaceId === '*' ? '>' : '*', OWNER, SCOUT, [OWN_FILE]);
    await runTurn(namespaceId, OWNER, SCOUT, [OWN_FILE], { traceId: 'the last one' });
    await waitFor(
      'the record of the last turn',
      () => heard.some(({ type, traceId }) => type === 'turn.ended' && traceId === 'the last one'),
      10_000,
    );
    expect(new Set(heard.map((event) => event.namespaceId))).toEqual(new Set([namespaceId]));
  });
});

describe('a hostile path', () => {
  const PATH_OWNER = human('constructor');
  let folder: string;
  let before: Awaited<ReturnType<typeof snapshot>>;
  const secrets = ['the secret outside', 'of alice'];

  beforeAll(async () => {
    // Granted everything of its owner: what is refused below is refused by the confinement and not for want of a grant.
    folder = join(system.stack.filesRoot, ...ownerFolder(NAMESPACE, PATH_OWNER));
    await givenFile(NAMESPACE, ALICE, 'of alice');
    const alice = join(system.stack.filesRoot, ...ownerFolder(NAMESPACE, ALICE));
    await mkdir(join(folder, 'notes'), { recursive: true });
    await writeFile(join(folder, 'notes', 'plan.md'), 'Buy milk');
    await symlink(join(outside, 'secret.txt'), join(folder, 'link-to-file'));
    await symlink(outside, join(folder, 'link-to-folder'));
    await symlink('/', join(folder, 'link-to-everything'));
    await symlink(alice, join(folder, 'link-to-alice'));
    await symlink('../../..', join(folder, 'link-upwards'));
    await symlink('notes', join(folder, 'link-inside'));
    await symlink(join(outside, 'not-there.txt'), join(folder, 'link-to-nothing'));
    await symlink('link-to-itself', join(folder, 'link-to-itself'));
  });
  beforeEach(async () => {
    before = { ...(await snapshot()), ...(await folderSnapshot(outside)) };
  });
  afterEach(async () => expect({ ...(await snapshot()), ...(await folderSnapshot(outside)) }).toEqual(before));

  const READING = ['files.read', 'files.list', 'files.stat'];

  const onEveryTool = (path: unknown, creating: boolean): readonly ScriptedCall[] =>
    [
      ...READING.map((tool) => [tool, { path }] as const),
      ['files.search', { path, query: 'e' }] as const,
      ['files.append', { path, content: 'written' }] as const,
      ...(creating ? [['files.create', { path, content: 'written' }] as const] : []),
    ].map(([tool, args]) => call(tool, args as JsonObj));

  /** Asks for each path with every tool, all in one turn; the different answers to each path. */
  const asked = async (
    cases: readonly { readonly what: string; readonly path: unknown }[],
    creating = true,
  ): Promise<Readonly<Record<string, readonly unknown[]>>> => {
    const calls = cases.map(({ path }) => onEveryTool(path, creating));
    const answer = await runTurn(NAMESPACE, PATH_OWNER, SCOUT, calls.flat());
    tellsNothing(answer);
    const rest = [...answers(answer)];
    return Object.fromEntries(cases.map(({ what }, index) => [what, [...new Set(rest.splice(0, calls[index]?.length))]]));
  };

  const tellsNothing = (answer: TurnAnswer): void => {
    for (const secret of [...secrets, 'root:', system.stack.filesRoot, outside])
      expect(JSON.stringify(answer.result)).not.toContain(secret);
  };

  it('is no argument of a tool', async () => {
    const cases = [
      { what: '..', path: ['..'] },
      { what: '.', path: ['.'] },
      { what: '.. below a folder that is there', path: ['notes', '..', '..', 'own.txt'] },
      { what: '../ in one segment', path: ['../own.txt'] },
      { what: '..\\ in one segment', path: ['..\\own.txt'] },
      { what: 'an absolute path in one segment', path: ['/etc/passwd'] },
      { what: 'an absolute path in several', path: ['', 'etc', 'passwd'] },
      { what: 'a drive', path: ['C:\\Windows\\win.ini'] },
      { what: 'a share', path: ['\\\\host\\share'] },
      { what: 'a URL', path: ['file:///etc/passwd'] },
      { what: '.. with a space before it', path: [' ..', 'own.txt'] },
      { what: '.. with a space after it', path: ['.. ', 'own.txt'] },
      { what: '.. with a space that does not break', path: ['..\u00a0', 'own.txt'] },
      { what: '.. with a line end', path: ['..\n', 'own.txt'] },
      { what: 'a NUL byte', path: ['notes', 'plan.md\u0000.txt'] },
      { what: 'a NUL byte alone', path: ['\u0000'] },
      { what: 'an empty segment', path: ['notes', '', 'plan.md'] },
      { what: '65 segments', path: Array.from({ length: 65 }, () => 'd') },
      { what: '300 characters in a segment', path: ['x'.repeat(300)] },
      { what: 'a path that is no list', path: 'notes/plan.md' },
      { what: 'a path that is a list of lists', path: [['notes']] },
      { what: 'a path that is missing', path: null },
    ];
    expect(await asked(cases)).toEqual(each(cases, () => ['failed invalid_tool_arguments']));
  }, 60_000);

  it('stands for itself where it is legal, and names nothing that is there', async () => {
    const cases = [
      { what: '%2e%2e', path: ['%2e%2e', 'own.txt'] },
      { what: '%2e%2e%2f', path: ['%2e%2e%2fown.txt'] },
      { what: '%252e%252e', path: ['%252e%252e', 'own.txt'] },
      { what: '..;', path: ['..;', 'own.txt'] },
      { what: 'three dots', path: ['...', 'own.txt'] },
      { what: 'dots of full width', path: ['\uff0e\uff0e', 'own.txt'] },
      { what: 'a two dot leader', path: ['\u2025', 'own.txt'] },
      { what: 'a slash of full width', path: ['..\uff0fown.txt'] },
      { what: 'a dot with a zero-width space', path: ['.\u200b.', 'own.txt'] },
      { what: 'a home folder', path: ['~', 'own.txt'] },
      { what: 'a variable', path: ['$HOME', '`id`'] },
      { what: 'a name of Windows', path: ['CON'] },
      { what: 'a stream of Windows', path: ['own.txt::$DATA'] },
    ];
    expect(await asked(cases, false)).toEqual(each(cases, () => ['failed file_not_found']));
  }, 60_000);

  it('cannot name a file here', async () => {
    const cases = [
      { what: 'a segment longer than a file name in bytes', path: ['🦊'.repeat(128)] },
      { what: 'half of a surrogate pair', path: ['\ud83e'] },
    ];
    expect(await asked(cases)).toEqual(each(cases, () => ['failed path_refused']));
  }, 60_000);

  it('through a link is refused', async () => {
    const cases = [
      { what: 'to a file outside', path: ['link-to-file'] },
      { what: 'to a folder outside', path: ['link-to-folder'] },
      { what: 'to a file in a folder outside', path: ['link-to-folder', 'secret.txt'] },
      { what: 'to the root of the host', path: ['link-to-everything', 'etc', 'passwd'] },
      { what: "into another owner's folder", path: ['link-to-alice', 'own.txt'] },
      { what: 'upwards', path: ['link-upwards', NAMESPACE, 'human', 'alice', 'own.txt'] },
      { what: 'that stays inside, for it could be changed between look and use', path: ['link-inside', 'plan.md'] },
      { what: 'to nothing, where a file could be made through it', path: ['link-to-nothing'] },
      { what: 'to itself', path: ['link-to-itself'] },
    ];
    expect(await asked(cases)).toEqual(each(cases, () => ['failed path_not_confined']));
  }, 60_000);

  it('is not found by listing or searching around it', async () => {
    const answer = await runTurn(NAMESPACE, PATH_OWNER, SCOUT, [LIST, call('files.search', { path: [], query: 'e' })]);
    const [listed, searched] = answers(answer) as [{ entries: { name: string }[] }, { matches: { path: string[] }[] }];
    expect(listed.entries.map(({ name }) => name).filter((name) => name.startsWith('link-'))).toEqual([]);
    expect(new Set(searched.matches.map(({ path }) => path.join('/')))).toEqual(new Set(['made.txt', 'own.txt']));
    tellsNothing(answer);
  });

  it('is not covered by a grant whose path it merely spells', async () => {
    const agent: AgentAddress = { kind: 'agent', agentId: 'narrow' };
    await system.grant(
      'narrow run',
      { namespace: 'sharedos.execution', path: addressPath(agent), actions: ['invoke'], scope: 'exact' },
      { from: PATH_OWNER, to: agent },
    );
    await system.grant('narrow', { path: ['notes'], actions: ['read'] }, { from: PATH_OWNER, to: agent });
    const calls = [['notes', '..', 'own.txt'], ['notes/../own.txt'], ['notes', 'plan.md'], ['notes%2fplan.md'], ['NOTES', 'plan.md']].map(
      (path) => call('files.read', { path }),
    );
    expect(answers(await runTurn(NAMESPACE, PATH_OWNER, agent, calls))).toMatchObject([
      'failed invalid_tool_arguments',
      'failed invalid_tool_arguments',
      { content: 'Buy milk' },
      'denied no_matching_grant',
      'denied no_matching_grant',
    ]);
  });
});

describe('the folder of an owner', () => {
  it('is not entered when it is a link itself', async () => {
    const owner = human('CON');
    const folder = join(system.stack.filesRoot, ...ownerFolder(NAMESPACE, owner));
    const aside = `${folder}-aside`;
    await rename(folder, aside);
    await symlink(join(system.stack.filesRoot, ...ownerFolder(NAMESPACE, ALICE)), folder);
    const answer = await runTurn(NAMESPACE, owner, SCOUT, [OWN_FILE, LIST, MAKE]);
    expect(new Set(answers(answer))).toEqual(new Set(['failed path_not_confined']));
    await rm(folder);
    await rename(aside, folder);
    expect(answers(await runTurn(NAMESPACE, owner, SCOUT, [OWN_FILE]))).toMatchObject([
      { content: `of ${addressKey(owner)} in "${NAMESPACE}"` },
    ]);
  });

  it('never was more than what each owner wrote', async () => {
    const paths = Object.keys(await snapshot());
    const owned = HOSTILE_PRINCIPALS.map(({ namespaceId, principal }) => ownerFolder(namespaceId, principal).join('/'));
    const known = [...owned, `${NAMESPACE}/human/alice`, `${NAMESPACE}/human/bob`];
    const strangers = paths.filter(
      (path) => !known.some((folder) => path === folder || path.startsWith(`${folder}/`) || folder.startsWith(`${path}/`)),
    );
    expect(strangers).toEqual([]);
  });
});
