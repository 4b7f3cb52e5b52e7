import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connectSharedOS } from '@sharedos/client';
import { type EscalationAt, type EscalationsAt, SERVICE_NAMES } from '@sharedos/contracts';
import { ownerFolder } from '@sharedos/tools';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALICE, type CliSystem, NAMESPACE, type Ran, SCOUT, startCliSystem } from './cli-system.fixture.ts';

let system: CliSystem;
let endAgent: () => Promise<void>;
const sharedos = (...args: readonly string[]): Promise<Ran> => system.run(...args);
const said = (text: string): unknown => expect.stringContaining(text);

beforeAll(async () => {
  system = await startCliSystem(SERVICE_NAMES, { SHAREDOS_TOOL_NAMESPACES: 'files,sharedos' });
  await grant('agent:scout', 'run-scout', 'sharedos.execution:agent/scout', 'invoke');
  await grant('agent:scout', 'scout-asks', 'sharedos:escalation', 'request');
  await sharedos('agent', 'register', 'scout', '--authority', 'human:alice', '--runtime', 'remote');
  const { user, password } = system.stack.credentials.principal(NAMESPACE, SCOUT);
  const scout = await connectSharedOS({ servers: system.stack.natsUrl, user, password, namespaceId: NAMESPACE, principal: SCOUT });
  await scout.agent(({ turn, escalate }) => escalate(turn.message.payload as string));
  endAgent = () => scout.close();
}, 180_000);
afterAll(async () => {
  await endAgent?.();
  await system?.stop();
});

const grant = (to: string, id: string, resource: string, action: string) =>
  sharedos('grant', 'issue', '--to', to, '--resource', resource, '--action', action, '--id', id);
/** Where alice's files are. */
const folderOf = async (): Promise<string> => {
  const folder = join(system.stack.filesRoot, ...ownerFolder(NAMESPACE, ALICE));
  await mkdir(folder, { recursive: true });
  return folder;
};

/** Ends a turn of scout on a question, and answers its id. */
const asks = async (reason: string): Promise<string> => {
  const turn = await sharedos('turn', 'submit', '--agent', 'scout', '--purpose', 'read notes', '--message', reason, '--json');
  expect(JSON.parse(turn.out)).toMatchObject({ status: 'escalated' });
  const { escalations } = await system.json<EscalationsAt>('escalation', 'list', '--status', 'open');
  const id = escalations.find(({ question }) => question.reason === reason)?.question.id;
  if (id === undefined) throw new Error('the question is not there');
  return id;
};

describe('the questions of turns', () => {
  it('are none where nobody asked', async () =>
    expect(await sharedos('escalation', 'list')).toMatchObject({ code: 0, out: 'no questions\n' }));

  it('are listed and shown to whom they concern, with what to type next', async () => {
    const id = await asks('may I read the diary?');
    expect((await sharedos('escalation', 'list')).out).toMatch(
      new RegExp(`^QUESTION .*\n${id} +open +agent:scout +what you say +may I read the diary\\? `),
    );
    const { out } = await sharedos('escalation', 'show', id);
    expect(out).toMatch(/^status +open\nfrom +agent:scout\nto +human:alice\n/m);
    expect(out).toContain(`sharedos escalation approve ${id}\nsharedos escalation refuse ${id}\n`);
    expect(await sharedos('escalation', 'show', id, '--as', 'human:bob')).toMatchObject({ code: 1, err: said('escalation_not_found') });
    expect((await sharedos('escalation', 'list', '--as', 'human:bob')).out).toBe('no questions\n');
  });

  it('are approved with what the reviewer gives', async () => {
    const id = await asks('may I read the plan?');
    expect(await sharedos('escalation', 'approve', id)).toMatchObject({ code: 1, err: said('nothing_to_grant') });
    const given = ['--resource', 'files:notes/plan.md', '--action', 'read', '--exact', '--expires', '30m', '--max-uses', '2'];
    const { escalation } = await system.json<EscalationAt>('escalation', 'approve', id, ...given);
    expect(escalation).toMatchObject({
      status: 'approved',
      grant: {
        subject: SCOUT,
        capabilities: [{ resource: { namespace: 'files', path: ['notes', 'plan.md'] }, actions: ['read'], scope: 'exact' }],
        constraints: { purposes: ['read notes'], maxUses: 2 },
      },
    });
    expect((await sharedos('escalation', 'show', id)).out).toMatch(/^granted +escalation-.*human:alice lets agent:scout read files:/m);
    expect((await sharedos('grant', 'list', '--held', '--as', 'agent:scout')).out).toContain(escalation.grant?.id);
  });

  it('are answered once, and the same command again repeats the answer', async () => {
    const id = await asks('may I write?');
    const refuse = ['escalation', 'refuse', id, '--reason', 'not today'];
    expect(await sharedos(...refuse, '--command-id', 'once')).toMatchObject({ code: 0, out: said(`refused ${id}\n`) });
    expect(await sharedos(...refuse, '--command-id', 'once')).toMatchObject({ code: 0, out: said(`refused ${id}\n`) });
    expect(await sharedos(...refuse)).toMatchObject({ code: 1, err: said('escalation_answered') });
  });

  it('are taken back by whoever asked, and by nobody else', async () => {
    const id = await asks('may I delete?');
    expect(await sharedos('escalation', 'withdraw', id)).toMatchObject({ code: 1, err: said('not_the_requester') });
    expect(await sharedos('escalation', 'withdraw', id, '--as', 'agent:scout')).toMatchObject({ code: 0, out: said('withdrawn') });
  });

  it('are about calls that nobody granted, where the settings say so, and show their arguments', async () => {
    await grant('agent:helper', 'run-helper', 'sharedos.execution:agent/helper', 'invoke');
    await grant('agent:helper', 'helper-logs', 'files:log.md', 'append');
    await sharedos('settings', 'set', 'asksAboutRefusedCalls=true');
    await writeFile(join(await folderOf(), 'plan.md'), 'milk');
    const append = `files.append ${JSON.stringify({ path: ['plan.md'], content: ' and stones' })}`;
    const submit = () => sharedos('turn', 'submit', '--agent', 'helper', '--purpose', 'keep notes', '--call', append);
    expect(await submit()).toMatchObject({ code: 1, err: said('no_matching_grant') });
    const { escalations } = await system.json<EscalationsAt>('escalation', 'list', '--status', 'open');
    const id = escalations.find(({ question }) => question.call !== undefined)?.question.id ?? '';
    const { out } = await sharedos('escalation', 'show', id);
    expect(out).toMatch(/^wants +append files:plan\.md\ncall +files\.append, this once and exactly as it is here\narguments /m);
    expect(out).toContain('" and stones"');
    expect(await sharedos('escalation', 'approve', id)).toMatchObject({ code: 0, out: said(`approved ${id}\n`) });
    expect(await submit()).toMatchObject({ code: 0 });
    expect(await submit()).toMatchObject({ code: 1, err: said('grant_exhausted') });
  });

  it.each([
    [['approve', 'ask-1', '--resource', 'files:notes'], '--resource and --action go together'],
    [['approve', 'ask-1', '--exact'], '--exact says how --resource is meant'],
    [['narrow', 'ask-1'], 'say which part with --resource and --action'],
    [['list', '--status', 'lost'], 'Allowed choices are open, approved'],
  ])('are not answered by a command line that is wrong: %j', async (words, message) =>
    expect(await sharedos('escalation', ...words)).toMatchObject({ code: 2, err: said(message) }),
  );
});
