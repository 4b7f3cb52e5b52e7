import { copyFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CliSystem, type Ran, startCliSystem } from '../cli-system.fixture.ts';
import { withSpeakers } from '../speakers.ts';
import { applyGrants } from './apply-grants.ts';
import { GrantsFile } from './grants-file.ts';
import { readYaml } from './read-yaml.ts';

const EXAMPLES = join(import.meta.dirname, '../../../../examples');

let system: CliSystem;
const sharedos = (...args: readonly string[]): Promise<Ran> => system.run(...args);
const live = async (as: string): Promise<string[]> => {
  const { grants } = await system.json<{ grants: { id: string; revokedAt?: string }[] }>('grant', 'list', '--as', as);
  return grants.filter(({ revokedAt }) => revokedAt === undefined).map(({ id }) => id);
};
const edit = async (change: (text: string) => string): Promise<void> =>
  system.write('grants.yaml', change(await readFile(join(system.folder, 'grants.yaml'), 'utf8')));

beforeAll(async () => {
  system = await startCliSystem(['authorizer']);
  for (const name of ['grants.yaml', 'assertions.yaml']) await copyFile(join(EXAMPLES, name), join(system.folder, name));
}, 120_000);
afterAll(() => system?.stop());

describe('the examples', () => {
  it('hold, without any running system', async () => {
    const checked = await sharedos('check', '-f', join(EXAMPLES, 'assertions.yaml'));
    expect(checked).toMatchObject({ code: 0, err: '' });
    expect(checked.out).toMatch(/all \d+ hold\n$/);
  });

  it('do not hold for an empty file of grants: what must be allowed is told by its line, and the rest holds', async () => {
    await system.write('none.yaml', 'version: 1\nname: none\nissuer: human:alice\ngrants: []\n');
    const checked = await sharedos('check', '-f', 'assertions.yaml', '--grants', 'none.yaml');
    expect(checked.code).toBe(1);
    expect(checked.out).toMatch(/✗ {2}assertions\.yaml:5 .*allowed .*denied \(no_matching_grant\)/);
    expect(checked.err).toMatch(/3 of 7 assertions do not hold/);
    const json = JSON.parse((await sharedos('check', '-f', 'assertions.yaml', '--grants', 'none.yaml', '--json')).out) as object;
    expect(json).toMatchObject({ assertions: 7, failed: 3 });
  });
});

describe('grants as a file', () => {
  it('are planned without changing anything', async () => {
    const planned = await sharedos('plan', '-f', 'grants.yaml');
    expect(planned.code).toBe(0);
    expect(planned.out).toMatch(/^\+ scout-reads-notes .*\n[\s\S]*3 to add, 0 to revoke, 0 kept\n$/);
    expect(await live('human:alice')).toEqual([]);
    expect(await sharedos('plan', '-f', 'grants.yaml', '--check')).toMatchObject({ code: 1 });
  });

  it('are applied by a second run from where a first one was cut off', async () => {
    const cut = new Error('the process ended here');
    const file = await readYaml(system.terminal, 'grants.yaml', GrantsFile);
    const invocation = { terminal: system.terminal, options: {}, show: () => undefined };
    const run = withSpeakers(invocation, (speakers) =>
      applyGrants(file, speakers, () => {
        throw cut;
      }),
    );
    await expect(run).rejects.toBe(cut);
    expect(await live('human:alice')).toEqual(['scout-reads-notes']);

    const applied = await sharedos('apply', '-f', 'grants.yaml');
    expect(applied).toMatchObject({ code: 0, out: 'done: 2 changes, 1 kept\n' });
    expect(applied.err).toMatch(/^1\/2 \+ scout-keeps-a-journal .*\n2\/2 \+ bob-reads-ideas /);
    expect(await live('human:alice')).toEqual(['scout-keeps-a-journal', 'scout-reads-notes']);
    expect(await live('agent:scout')).toEqual(['bob-reads-ideas']);
  });

  it('are no change the second time', async () => {
    expect(await sharedos('apply', '-f', 'grants.yaml')).toMatchObject({ code: 0, out: 'no change: 3 kept\n', err: '' });
    expect(await sharedos('plan', '-f', 'grants.yaml', '--check')).toMatchObject({ code: 0 });
  });

  it('are checked where they stand, with what they were passed on from', async () => {
    const inPlace = (await readFile(join(system.folder, 'assertions.yaml'), 'utf8')).replace('grants: grants.yaml\n', '');
    await system.write('in-place.yaml', inPlace);
    expect(await sharedos('check', '-f', 'in-place.yaml')).toMatchObject({ code: 0, out: expect.stringContaining('all 7 hold') as string });
  });

  it('are exported as a file that is no change', async () => {
    const exported = await sharedos('grant', 'export', '-o', 'exported.yaml');
    expect(exported).toMatchObject({ code: 0, out: 'wrote 2 grants to exported.yaml\n' });
    expect((await sharedos('plan', '-f', 'exported.yaml')).out).toMatch(/no change: 2 kept\n$/);
  });

  it('leave alone what was issued by hand, unless the file manages everything', async () => {
    await sharedos('grant', 'issue', '--to', 'human:bob', '--resource', 'files:letters', '--action', 'read', '--id', 'by-hand');
    expect((await sharedos('plan', '-f', 'grants.yaml')).out).toMatch(/no change: 3 kept · 1 live grant /);
    expect((await sharedos('plan', '-f', 'exported.yaml')).out).toMatch(/- by-hand .*\(not in the file\)/);
  });

  it('end the grant before when an entry changes, and pass on anew what hung below it', async () => {
    await edit((text) => text.replace('actions: [read, list]', 'actions: [read]'));
    const applied = await sharedos('apply', '-f', 'grants.yaml');
    expect(applied).toMatchObject({ code: 0, out: 'done: 4 changes, 1 kept\n' });
    expect(await live('human:alice')).toEqual([
      'by-hand',
      'scout-keeps-a-journal',
      expect.stringMatching(/^scout-reads-notes-[0-9a-f]{8}$/),
    ]);
    expect(await live('agent:scout')).toEqual([expect.stringMatching(/^bob-reads-ideas-[0-9a-f]{8}$/)]);
    expect((await sharedos('apply', '-f', 'grants.yaml')).out).toBe('no change: 3 kept\n');
  });

  it('go round an id that somebody else has used, which their issuer does not see', async () => {
    await sharedos(
      'grant',
      'issue',
      '--as',
      'human:bob',
      '--to',
      'agent:scout',
      '--resource',
      'files:x',
      '--action',
      'read',
      '--id',
      'taken',
    );
    await edit((text) => `${text}  - id: taken\n    to: agent:scout\n    allow: [{ resource: "files:y", actions: [read] }]\n`);
    expect(await sharedos('apply', '-f', 'grants.yaml')).toMatchObject({ code: 0, out: 'done: 1 change, 3 kept\n' });
    expect(await live('human:alice')).toContainEqual(expect.stringMatching(/^taken-[0-9a-f]{8}$/));
    expect((await sharedos('apply', '-f', 'grants.yaml')).out).toBe('no change: 4 kept\n');
  });

  it('are refused for another namespace, and where nobody can pass on for a holder', async () => {
    await system.write('other.yaml', 'version: 1\nname: x\nnamespace: elsewhere\ngrants: []\n');
    expect(await sharedos('plan', '-f', 'other.yaml')).toMatchObject({
      code: 2,
      err: expect.stringMatching(/other\.yaml:3: .*elsewhere/) as string,
    });
    const parts = 'allow: [{ resource: "files:n", actions: [read] }]';
    await system.write(
      'stranger.yaml',
      `version: 1\nname: x\ngrants:\n  - { id: a, to: agent:stranger, depth: 1, ${parts} }\n  - { id: b, parent: a, to: human:bob, ${parts} }\n`,
    );
    expect((await sharedos('plan', '-f', 'stranger.yaml')).err).toMatch(/no credentials for agent:stranger/);
  });

  it('say what to do when nobody answers', async () => {
    await system.stack.services()[0]?.stop();
    const applied = await sharedos('apply', '-f', 'grants.yaml', '--timeout', '300');
    expect(applied).toMatchObject({ code: 3, err: expect.stringMatching(/nobody could find out/) as string });
  });
});
