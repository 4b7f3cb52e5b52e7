import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AuditRecord } from '@sharedos/contracts';
import { waitFor } from '@sharedos/testing';
import { ownerFolder } from '@sharedos/tools';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ALICE, type CliSystem, NAMESPACE, type Ran, startCliSystem } from './cli-system.fixture.ts';

const DEADLINE_MS = 60_000;
const HEADING = '### What was decided, and the proof of it';

let system: CliSystem;
/** The records of a turn with a call that was allowed and one that was not. */
let records: readonly AuditRecord[];
const sharedos = (...args: readonly string[]): Promise<Ran> => system.run(...args);

beforeAll(async () => {
  system = await startCliSystem(['authorizer', 'tool-executor', 'audit-projector']);
  const notes = join(system.stack.filesRoot, ...ownerFolder(NAMESPACE, ALICE), 'notes');
  await mkdir(notes, { recursive: true });
  await writeFile(join(notes, 'plan.md'), 'Buy milk');
  for (const [to, resource, action, id] of [
    ['human:alice', 'sharedos:audit', 'read', 'read-audit'],
    ['agent:scout', 'sharedos.execution:agent/scout', 'invoke', 'run-scout'],
    ['agent:scout', 'files:notes', 'read', 'notes-for-scout'],
  ] as const)
    expect(
      await sharedos('grant', 'issue', '--to', to, '--resource', resource, '--action', action, '--id', id, '--max-uses', '9'),
    ).toMatchObject({
      code: 0,
    });
  const calls = ['--call', 'files.read notes/plan.md', '--call', 'files.read private/diary.md'];
  await sharedos('turn', 'submit', '--agent', 'scout', '--purpose', 'read notes', ...calls);
  records = await waitFor(
    'the end of the turn on record',
    async () => {
      const found = await system.json<{ readonly records: readonly AuditRecord[] }>('records', 'query');
      return found.records.some(({ event }) => event.type === 'turn.ended') ? found.records : undefined;
    },
    DEADLINE_MS,
  );
}, 180_000);
afterAll(() => system?.stop());

const decided = (outcome: 'allowed' | 'denied') => {
  const found = records.find(
    ({ event }) => event.type === 'authorization.checked' && event.outcome === outcome && event.resource?.namespace === 'files',
  );
  if (found === undefined) throw new Error(`nothing was ${outcome}`);
  return found.event;
};

/** The commands of the README's section, as a shell would split them, with ids of ours in their places. */
const shown = async (): Promise<ReadonlyMap<string, readonly string[]>> => {
  const readme = await readFile(join(import.meta.dirname, '../../../README.md'), 'utf8');
  const block = readme.slice(readme.indexOf(HEADING)).split('```')[1] ?? '';
  const commands = [...block.matchAll(/^npx sharedos ([^#\n]+)/gm)].map(([, command = '']) => command.trim());
  return new Map(commands.map((command) => [command, command.split(/\s+/)]));
};

describe('the README’s commands of audit', { timeout: DEADLINE_MS }, () => {
  it('do what is said of them', async () => {
    const known: Readonly<Record<string, (args: readonly string[]) => Promise<void>>> = {
      'records turns <trace>': async (args) => {
        const ran = await sharedos(...args.map((arg) => (arg === '<trace>' ? decided('allowed').traceId : arg)));
        expect(ran).toMatchObject({
          code: 0,
          out: expect.stringMatching(/admission[\s\S]*files\.read .*allowed +notes-for-scout .*succeeded[\s\S]*turn\.ended/),
        });
      },
      'records summary': async (args) => {
        const ran = await waitFor(
          'the records to be signed',
          async () => {
            const now = await sharedos(...args);
            return now.out.includes('signed up to record') ? now : undefined;
          },
          DEADLINE_MS,
        );
        expect(ran).toMatchObject({
          code: 0,
          out: expect.stringMatching(/\d+ allowed, \d+ denied[\s\S]*no_matching_grant[\s\S]*\n1 +0 +9 +notes-for-scout/),
        });
      },
      'audit tail --since 1h --follow': async (args) => {
        const ran = await sharedos(...args, '--count', String(records.length));
        expect(ran.code).toBe(0);
        expect(ran.out.trimEnd().split('\n')).toHaveLength(records.length);
      },
      'audit export audit.jsonl': async (args) => {
        expect(await sharedos(...args)).toMatchObject({ code: 0, out: expect.stringMatching(/^\d+ lines in audit\.jsonl\n$/) });
      },
      'audit verify --file audit.jsonl': async (args) => {
        expect(await sharedos(...args)).toMatchObject({ code: 0, out: expect.stringContaining('are as they were made') });
        const file = join(system.folder, 'audit.jsonl');
        const text = await readFile(file, 'utf8');
        await writeFile(file, text.replace('"outcome":"denied"', '"outcome":"allowed"'));
        expect(await sharedos(...args)).toMatchObject({ code: 1, err: expect.stringMatching(/not sound from record \d+ on/) });
      },
      'audit replay': async (args) => {
        expect(await sharedos(...args)).toMatchObject({ code: 0, out: expect.stringMatching(/^\d+ decisions: \d+ the same, 0 differ/) });
      },
      'audit explain <record>': async (args) => {
        const ran = await sharedos(...args.map((arg) => (arg === '<record>' ? decided('denied').id : arg)));
        expect(ran).toMatchObject({ code: 0, out: expect.stringMatching(/no_matching_grant[\s\S]*as recorded[\s\S]*✗ notes-for-scout/) });
      },
      'audit blame <operation>': async (args) => {
        const operation = decided('allowed').operationId ?? '';
        const ran = await sharedos(...args.map((arg) => (arg === '<operation>' ? operation : arg)));
        expect(ran).toMatchObject({
          code: 0,
          out: expect.stringMatching(/tool\.invoked succeeded[\s\S]*notes-for-scout: issued by human:alice/),
        });
      },
      'whatif revoke notes-for-scout': async (args) => {
        expect(await sharedos(...args)).toMatchObject({
          code: 0,
          out: expect.stringMatching(/allowed .*\n {8}\S+: computed denied[\s\S]*[1-9]\d* of \d+ decisions would have come out otherwise/),
        });
      },
    };
    const commands = await shown();
    expect([...commands.keys()]).toEqual(Object.keys(known));
    for (const [command, args] of commands) await known[command]?.(args);
  });
});
