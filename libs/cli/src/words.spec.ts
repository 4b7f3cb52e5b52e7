import { newTurn } from '@sharedos/client';
import { unavailable } from '@sharedos/contracts';
import { FILES_PLANE } from '@sharedos/tools';
import { describe, expect, it } from 'vitest';
import { auditLine } from './audit-line.ts';
import { type Again, valueOf } from './command-line.ts';
import { parseCall } from './commands/turn.ts';
import { parseDuration, parseWhen } from './duration.ts';
import { CommandFailure, EXIT, saying } from './exit-code.ts';
import { FILES_ACTIONS, actionHint, toolHint } from './known-tools.ts';
import { parsePrincipal, principalName } from './principal-name.ts';
import { parsePath, parseResource, resourceName } from './resource-name.ts';
import { shellWord } from './shell-word.ts';
import { printable, table } from './table.ts';

const usage = (run: () => unknown): void => {
  try {
    run();
  } catch (error) {
    expect(error).toBeInstanceOf(CommandFailure);
    expect((error as CommandFailure).exitCode).toBe(EXIT.usage);
    return;
  }
  expect.unreachable('it should have been refused');
};

describe('a principal on the command line', () => {
  it.each([
    ['human:alice', { kind: 'human', userId: 'alice' }],
    ['agent:a:b', { kind: 'agent', agentId: 'a:b' }],
    ['group:team 1', { kind: 'group', conversationId: 'team 1' }],
    ['service:host', { kind: 'service', serviceId: 'host' }],
  ])('%s is read and written the same', (text, address) => {
    expect(parsePrincipal(text)).toEqual(address);
    expect(principalName(parsePrincipal(text))).toBe(text);
  });
  it.each(['alice', 'robot:alice', 'human:', 'human:  ', ':alice', `human:${'x'.repeat(257)}`])('"%s" is refused as wrong usage', (text) =>
    usage(() => parsePrincipal(text)),
  );
});

describe('a resource on the command line', () => {
  it.each([
    ['files:', { namespace: 'files', path: [] }],
    ['files:notes', { namespace: 'files', path: ['notes'] }],
    ['files:notes/plan.md', { namespace: 'files', path: ['notes', 'plan.md'] }],
    ['files:/notes/', { namespace: 'files', path: ['notes'] }],
    ['files:a:b', { namespace: 'files', path: ['a:b'] }],
  ])('%s is read', (text, resource) => expect(parseResource(text)).toEqual(resource));
  it.each(['notes', ':notes', 'files:notes/../private', 'files:.', 'files:a//b', 'files: a', 'files:a\u0000b'])(
    '"%s" is refused as wrong usage',
    (text) => usage(() => parseResource(text)),
  );
  it('is written as it is read', () =>
    expect(resourceName({ namespace: 'files', path: ['notes', 'plan.md'] })).toBe('files:notes/plan.md'));
  it('leaves nothing of the root', () => expect(parsePath('/')).toEqual([]));
});

describe('a time on the command line', () => {
  const now = Date.parse('2026-01-01T00:00:00Z');
  it.each([
    ['90s', 90_000],
    ['30m', 1_800_000],
    ['7d', 604_800_000],
  ])('%s is a duration', (text, ms) => expect(parseDuration(text)).toBe(ms));
  it('is a duration from now, or a timestamp as it stands', () => {
    expect(parseWhen('12h', now)).toBe('2026-01-01T12:00:00.000Z');
    expect(parseWhen('2026-12-31T00:00:00+01:00', now)).toBe('2026-12-31T00:00:00+01:00');
  });
  it.each(['tomorrow', '12', '1w', '2026-12-31', '-5m', ''])('"%s" is refused as wrong usage', (text) => usage(() => parseWhen(text, now)));
});

describe('a call on the command line', () => {
  it.each([
    ['files.read notes/plan.md', { tool: 'files.read', arguments: { path: ['notes', 'plan.md'] } }],
    ['files.list', { tool: 'files.list', arguments: { path: [] } }],
    ['files.search {"path":[],"query":"milk"}', { tool: 'files.search', arguments: { path: [], query: 'milk' } }],
  ])('%s is read', (text, call) => expect(parseCall(text)).toEqual(call));
  it.each(['', '  ', 'files.search {"path":', 'files.read ../x'])('"%s" is refused as wrong usage', (text) => usage(() => parseCall(text)));
});

describe('a name that no tool has', () => {
  it('is judged by the tools there are', () => expect(FILES_ACTIONS).toEqual(Object.values(FILES_PLANE.rows).map(({ action }) => action)));
  it('gets a hint with those there are', () => {
    expect(toolHint('files.reed')).toEqual([expect.stringMatching(/"files\.reed" .*files\.read/) as string]);
    expect(actionHint('files', ['read', 'write'])).toEqual([expect.stringMatching(/"write" .*append/) as string]);
  });
  it('is no matter when a tool has it, or for a resource we know nothing of', () =>
    expect([toolHint('files.read'), actionHint('files', ['read', '*']), actionHint('mail', ['write'])]).toEqual([[], [], []]));
});

describe('why something was refused', () => {
  it('names its code once', () => {
    expect(saying({ code: 'no_matching_grant', message: 'The turn was refused: no_matching_grant.' })).toBe('(no_matching_grant).');
    expect(saying({ code: 'invalid_script', message: 'The state is not a script.' })).toBe('(invalid_script): The state is not a script.');
  });
});

describe('what is printed', () => {
  it('never holds what a terminal would obey', () => {
    expect(printable('a\u001b[2Jb\u202ec\nd')).toBe('a\\u001b[2Jb\\u202ec\\u000ad');
    expect(table(['ID'], [['x\u001b[31m']])).toBe('ID\nx\\u001b[31m\n');
  });
  it('stands in columns, with a dash for what is absent', () => {
    expect(
      table(
        ['ID', 'STATE'],
        [
          ['long-id', 'live'],
          ['b', undefined],
        ],
      ),
    ).toBe('ID       STATE\nlong-id  live\nb        –\n');
  });
  it('says of a record who did what to which resource, and why not', () => {
    const line = auditLine({
      version: '1',
      id: 'audit-1',
      type: 'tool.invoked',
      outcome: 'denied',
      at: '2026-01-01T12:00:00.000Z',
      traceId: 't',
      namespaceId: 'demo',
      actor: { kind: 'agent', agentId: 'scout' },
      authority: { kind: 'human', userId: 'alice' },
      owner: { kind: 'human', userId: 'alice' },
      purpose: 'read notes',
      tool: 'files.read',
      action: 'read',
      resource: { namespace: 'files', path: ['private', 'diary.md'] },
      reason: 'capability_missing',
    });
    expect(line).toBe(
      '12:00:00.000 ✗ tool.invoked denied              agent:scout for human:alice files.read read files:private/diary.md (capability_missing)',
    );
  });
});

describe('a call that nobody answered', () => {
  const nothing = unavailable('no answer within 10 ms');
  const failure = (again?: Again): CommandFailure => {
    try {
      valueOf(nothing, again);
    } catch (error) {
      if (error instanceof CommandFailure) return error;
    }
    return expect.unreachable('it should have failed');
  };

  it('says how to make exactly the same command again, to people and programs', () => {
    const { exitCode, message, details } = failure({ text: 'Repeat it with --command-id c1', details: { commandId: 'c1' } });
    expect([exitCode, details]).toEqual([EXIT.unavailable, { commandId: 'c1' }]);
    expect(message).toMatch(/no answer within 10 ms.*--command-id c1$/);
  });
  it('may be asked again when it only reads', () => expect(failure().message).toMatch(/Asking again changes nothing$/));
  it('names a command to paste that no shell sees more in', () => {
    expect(shellWord('turn-1')).toBe('turn-1');
    expect(shellWord("it's; rm")).toBe(`'it'\\''s; rm'`);
  });
});

describe('a turn made again', () => {
  const asked = { from: { kind: 'human', userId: 'alice' }, agent: 'scout', purpose: 'try', at: '2026-01-01T12:00:00Z' } as const;
  it('is the same request to the letter under the same execution id and time', () =>
    expect(newTurn({ ...asked, executionId: 'e-1' })).toEqual(newTurn({ ...asked, executionId: 'e-1' })));
  it('is another one, with another message and trace, at another time, under another id or from somebody else', () => {
    const of = (changes: object) => newTurn({ ...asked, executionId: 'e-1', ...changes }).message;
    const others = [{ at: '2026-01-01T12:00:01Z' }, { executionId: 'e-2' }, { from: { kind: 'human', userId: 'bob' } }].map(of);
    for (const key of ['id', 'traceId'] as const)
      expect(new Set([of({}), ...others].map((message) => message[key])).size).toBe(others.length + 1);
  });
});
