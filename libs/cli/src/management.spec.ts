import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connectSharedOS } from '@sharedos/client';
import { SERVICE_NAMES } from '@sharedos/contracts';
import { ownerFolder } from '@sharedos/tools';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALICE, type CliSystem, NAMESPACE, type Ran, SCOUT, startCliSystem } from './cli-system.fixture.ts';

let system: CliSystem;
const sharedos = (...args: readonly string[]): Promise<Ran> => system.run(...args);
const letScout = async (id: string, resource: string, action: string): Promise<void> => {
  const issued = await sharedos('grant', 'issue', '--to', 'agent:scout', '--resource', resource, '--action', action, '--id', id);
  expect(issued).toMatchObject({ code: 0 });
};
const read = (): Promise<Ran> =>
  sharedos('turn', 'submit', '--agent', 'scout', '--purpose', 'read notes', '--call', 'files.read notes/plan.md', '--json');

beforeAll(async () => {
  system = await startCliSystem(SERVICE_NAMES);
  const notes = join(system.stack.filesRoot, ...ownerFolder(NAMESPACE, ALICE), 'notes');
  await mkdir(notes, { recursive: true });
  await writeFile(join(notes, 'plan.md'), 'Buy milk');
  await sharedos('grant', 'issue', '--to', 'human:alice', '--resource', 'sharedos:audit', '--action', 'read', '--id', 'read-audit');
  await letScout('run-scout', 'sharedos.execution:agent/scout', 'invoke');
  await letScout('scout-reads', 'files:notes', 'read');
}, 180_000);
afterAll(() => system?.stop());

describe('the policy of a namespace', () => {
  const RULES = `version: 1
rules:
  - id: keep-the-plan
    forbid: { namespaces: [files], path: notes/plan.md, actions: [read], actors: [agent:scout] }
    reason: it is not ready
`;

  it('has no rules where nobody set any', async () =>
    expect(await sharedos('policy', 'get')).toMatchObject({ code: 0, out: 'no rules\nversion 0\n' }));

  it('is set from a file, and forbids what grants allow', async () => {
    await system.write('policy.yaml', RULES);
    const set = await sharedos('policy', 'set', '-f', 'policy.yaml');
    expect(set.out).toMatch(/keep-the-plan +forbid +agent:scout +read files below notes\/plan\.md .*it is not ready\nversion 1\n$/);
    expect(await read()).toMatchObject({ code: 1, err: expect.stringContaining('files.read (host_policy_denied)') as string });
  });

  it('is not set over a change that one has not seen', async () => {
    await system.write('policy.yaml', 'version: 1\nrules: []\n');
    expect(await sharedos('policy', 'set', '-f', 'policy.yaml', '--expected-version', '0')).toMatchObject({
      code: 1,
      err: expect.stringContaining('version_conflict') as string,
    });
    expect(await sharedos('policy', 'set', '-f', 'policy.yaml', '--expected-version', '1')).toMatchObject({ code: 0 });
    expect(JSON.parse((await read()).out)).toMatchObject({ output: { calls: [{ status: 'succeeded' }] } });
  });

  it('is nobody’s to set who does not manage it', async () =>
    expect(await sharedos('policy', 'set', '-f', 'policy.yaml', '--as', 'human:bob')).toMatchObject({
      code: 1,
      err: expect.stringContaining('not_an_administrator') as string,
    }));

  it.each<[string, string, RegExp]>([
    ['a rule that says nothing', 'version: 1\nrules:\n  - { id: a, forbid: {} }\n', /policy\.yaml/],
    ['a rule of neither kind', 'version: 1\nrules:\n  - { id: a }\n', /policy\.yaml/],
  ])('is refused for %s', async (_, text, message) => {
    await system.write('policy.yaml', text);
    expect(await sharedos('policy', 'set', '-f', 'policy.yaml')).toMatchObject({ code: 2, err: expect.stringMatching(message) as string });
  });
});

describe('the settings of a namespace', () => {
  it('are read, and set one by one', async () => {
    expect((await sharedos('settings', 'get')).out).toMatch(/liveRevocation +false\n[\s\S]*version 0\n$/);
    expect((await sharedos('settings', 'set', 'liveRevocation=true', 'grantsPerHolderMax=300')).out).toMatch(
      /liveRevocation +true\n[\s\S]*grantsPerHolderMax +300\n[\s\S]*version 1\n$/,
    );
  });
  it.each([
    [['gravity=1'], /no setting is called "gravity"; there are liveRevocation/],
    [['liveRevocation'], /write <name>=<value>/],
    [['liveRevocation=maybe'], /liveRevocation is not set as it must be/],
  ])('are refused as %s', async (words, message) =>
    expect(await sharedos('settings', 'set', ...words)).toMatchObject({ code: 2, err: expect.stringMatching(message) as string }),
  );
});

describe('an agent', () => {
  it('is registered once its authority and its owner have agreed', async () => {
    expect((await sharedos('agent', 'register', 'scout', '--authority', 'human:alice', '--owner', 'human:bob')).out).toMatch(
      /state +proposed: human:bob still to agree\n/,
    );
    await sharedos('agent', 'register', 'agent:scout', '--authority', 'human:alice', '--owner', 'human:bob', '--as', 'human:bob');
    expect((await sharedos('agent', 'get', 'scout')).out).toMatch(
      /^agent +scout\nstate +active\nauthority +human:alice\nowner +human:bob\n/,
    );
    expect((await sharedos('agent', 'withdraw', 'scout', '--as', 'human:bob')).out).toMatch(/state +withdrawn/);
  });
});

describe('stopping an agent', () => {
  it('freezes it, revokes what it holds, and tells the last effect before', async () => {
    expect(JSON.parse((await read()).out)).toMatchObject({ output: { calls: [{ status: 'succeeded' }] } });
    const stopped = await sharedos('stop', 'agent:scout', '--reason', 'reads what it should not');
    expect(stopped).toMatchObject({ code: 0 });
    expect(stopped.out).toMatch(
      /^stopped agent:scout: 2 grants revoked, 0 turns cancelled\nlast effect before it:\n.*tool\.invoked succeeded.*files\.read/,
    );
    expect(stopped.err).toMatch(/frozen agent:scout/);
    expect((await sharedos('policy', 'get')).out).toMatch(/agent:scout .* human:alice +reads what it should not\n/);
    expect((await read()).code).toBe(1);
  });

  it('cancels a turn that runs, and waits for its end', async () => {
    await sharedos('resume', 'agent:scout');
    await letScout('run-scout-remotely', 'sharedos.execution:agent/scout', 'invoke');
    await sharedos('agent', 'register', 'scout', '--authority', 'human:alice', '--runtime', 'remote');
    const { user, password } = system.stack.credentials.principal(NAMESPACE, SCOUT);
    const scout = await connectSharedOS({ servers: system.stack.natsUrl, user, password, namespaceId: NAMESPACE, principal: SCOUT });
    const deciding = Promise.withResolvers<void>();
    const undecided = Promise.withResolvers<never>();
    await scout.agent(() => {
      deciding.resolve();
      return undecided.promise;
    });
    try {
      const turn = sharedos('turn', 'submit', '--agent', 'scout', '--purpose', 'read notes', '--message', 'begin', '--json');
      await deciding.promise;
      expect((await sharedos('stop', 'agent:scout', '--reason', 'it goes on')).out).toMatch(
        /^stopped agent:scout: 1 grant revoked, 1 turn cancelled/,
      );
      expect(JSON.parse((await turn).out)).toMatchObject({ status: 'cancelled' });
    } finally {
      undecided.reject(new Error('over'));
      await scout.close();
      await sharedos('agent', 'withdraw', 'scout');
    }
  });

  it('changes nothing the second time', async () =>
    expect((await sharedos('stop', 'agent:scout', '--reason', 'again')).out).toMatch(/^stopped agent:scout: 0 grants revoked/));

  it('is ended by a resume, after which grants are to be issued anew', async () => {
    expect(await sharedos('resume', 'agent:scout')).toMatchObject({ code: 0, out: 'resumed agent:scout\n' });
    expect(await sharedos('resume', 'agent:scout')).toMatchObject({ code: 1, err: expect.stringContaining('not_stopped') as string });
    expect((await read()).code).toBe(1);
    await letScout('run-scout-again', 'sharedos.execution:agent/scout', 'invoke');
    await letScout('scout-reads-again', 'files:notes', 'read');
    expect(JSON.parse((await read()).out)).toMatchObject({ output: { calls: [{ status: 'succeeded' }] } });
  });

  it('stops a whole namespace, grants and all kept', async () => {
    expect((await sharedos('stop', 'namespace', '--reason', 'we look into it')).out).toMatch(/^stopped namespace: 0 grants revoked/);
    expect((await read()).code).toBe(1);
    await sharedos('resume', 'namespace');
    expect(JSON.parse((await read()).out)).toMatchObject({ output: { calls: [{ status: 'succeeded' }] } });
  });

  it.each([
    ['somebody who is no agent', ['stop', 'human:bob', '--reason', 'x']],
    ['no reason', ['stop', 'agent:scout']],
  ])('is refused for %s as wrong usage', async (_, words) => expect(await sharedos(...words)).toMatchObject({ code: 2 }));
});
