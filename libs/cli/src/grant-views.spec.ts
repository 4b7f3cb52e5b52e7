import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { waitFor } from '@sharedos/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type CliSystem, type Ran, startCliSystem } from './cli-system.fixture.ts';
import { runCommandLine } from './program.ts';

let system: CliSystem;
const sharedos = (...args: readonly string[]): Promise<Ran> => system.run(...args);
const explain = (resource: string, ...more: readonly string[]): Promise<Ran> =>
  sharedos('grant', 'explain', '--actor', 'agent:scout', '--to', 'read', '--resource', resource, '--purpose', 'read notes', ...more);

beforeAll(async () => {
  system = await startCliSystem(['authorizer']);
  await copyFile(join(import.meta.dirname, '../../../examples/grants.yaml'), join(system.folder, 'grants.yaml'));
  expect(await sharedos('apply', '-f', 'grants.yaml')).toMatchObject({ code: 0 });
}, 120_000);
afterAll(() => system?.stop());

describe('a grant', () => {
  it('is shown in full', async () =>
    expect((await sharedos('grant', 'show', 'scout-reads-notes')).out).toMatch(
      /^grant +scout-reads-notes\nstate +live\nfrom +human:alice\nto +agent:scout\nmay +read,list files:notes\/\*\*\nof +human:alice\nbounds +for "read notes", passed on ≤ 1\n/,
    ));

  it('is shown as a tree with what was derived from it', async () => {
    const tree = await sharedos('grant', 'tree', 'scout-reads-notes');
    expect(tree.out).toMatch(
      /^scout-reads-notes {2}human:alice → agent:scout .*\n└─ bob-reads-ideas {2}agent:scout → human:bob {2}read files:notes\/ideas\/\*\*/,
    );
    expect((await sharedos('grant', 'tree', 'scout-reads-notes', '--depth', '0')).out).not.toContain('bob');
    expect(await sharedos('grant', 'tree', 'nothing')).toMatchObject({
      code: 1,
      err: expect.stringContaining('grant_not_found') as string,
    });
  });

  it('is listed by its state and by whom it is given to', async () => {
    expect((await sharedos('grant', 'list', '--to', 'human:bob')).out).toBe('no grants\n');
    expect((await sharedos('grant', 'list', '--state', 'live', '--to', 'agent:scout')).out).toMatch(
      /^GRANT[^\n]*\nscout-keeps-a-journal .*\nscout-reads-notes .*\n$/,
    );
  });
});

describe('an explanation', () => {
  it('names the grant that allows', async () =>
    expect(await explain('files:notes/plan.md')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^allowed by scout-reads-notes\nat /) as string,
    }));

  it('says of each grant what it lacks', async () => {
    const explained = await explain('files:private/diary.md');
    expect(explained.code).toBe(1);
    expect(explained.out).toMatch(/^denied \(no_matching_grant\)\n2 grants looked at\nGRANT/);
    expect(explained.out).toMatch(/\nscout-keeps-a-journal +is for other purposes/);
    expect(explained.out).toMatch(/\nscout-reads-notes +does not cover this action on this resource/);
  });

  it('is the same at its revision, whatever was revoked since', async () => {
    await sharedos('grant', 'issue', '--to', 'agent:scout', '--resource', 'files:old', '--action', 'read', '--id', 'past');
    const before = await explain('files:old/a.md', '--json');
    const { revision } = JSON.parse(before.out) as { revision: string };
    await sharedos('grant', 'revoke', 'past');
    expect(await explain('files:old/a.md')).toMatchObject({ code: 1 });
    expect(await explain('files:old/a.md', '--revision', revision)).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^allowed by past\n/) as string,
    });
  });
});

it('who could do something is told with the grant', async () => {
  expect((await sharedos('grant', 'who', '--to', 'read', '--resource', 'files:notes/ideas/a.md')).out).toMatch(
    /^WHO +FOR +BY GRANT\n(?=[\s\S]*agent:scout +human:alice +scout-reads-notes\n)(?=[\s\S]*human:bob +agent:scout +bob-reads-ideas\n)/,
  );
  expect((await sharedos('grant', 'who', '--to', 'delete', '--resource', 'files:notes/plan.md')).out).toBe('nobody\n');
});

it('a watched list goes on with each grant that is issued or revoked, until it is stopped', async () => {
  const ended = new AbortController();
  let out = '';
  const watching = runCommandLine(['grant', 'list', '--watch', '--json'], {
    ...system.terminal,
    out: (text) => void (out += text),
    signal: ended.signal,
  });
  await waitFor('the list', () => out.includes('\n'), 20_000);
  await sharedos('grant', 'issue', '--to', 'human:bob', '--resource', 'files:letters', '--action', 'read', '--id', 'watched');
  await waitFor('its issue', () => out.split('\n').length > 2, 20_000);
  await sharedos('grant', 'revoke', 'watched');
  await waitFor('its end', () => out.includes('revokedAt'), 20_000);
  ended.abort();
  expect(await watching).toBe(0);
  const [list, ...changes] = out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(list).toHaveProperty('grants');
  expect(changes.map(({ grant }) => (grant as { id: string }).id)).toEqual(['watched', 'watched']);
});
