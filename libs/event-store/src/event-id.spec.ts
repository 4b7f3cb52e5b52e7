import { describe, expect, it } from 'vitest';
import { LogEvent } from '@sharedos/contracts';
import { type EventIdParts, eventIdOf, uuidV5 } from './event-id.ts';

const parts: EventIdParts = {
  namespaceId: 'acme',
  principal: '{"kind":"human","userId":"ann"}',
  verb: 'grant.issue',
  commandId: 'c-1',
  index: 0,
};

describe('the id of an event', () => {
  it('is a UUID of version 5, by the vectors that everybody computes', () => {
    const dns = '6ba7b810-9dad-11d1-80b4-00c04fd430c8';
    expect(uuidV5(dns, 'www.example.com')).toBe('2ed6657d-e927-568b-95e1-2665a8aea6a2');
    expect(uuidV5(dns, 'python.org')).toBe('886313e1-3b8a-5372-9b90-0c9aee199e5d');
  });

  it('never changes: recorded events carry it', () => {
    expect(eventIdOf(parts)).toBe('86de21e2-3325-51d8-b257-a5442d3914ec');
    expect(LogEvent.shape.eventId.safeParse(eventIdOf(parts)).success).toBe(true);
  });

  it.each([
    ['the namespace', { namespaceId: 'acme2' }],
    ['the principal', { principal: '{"kind":"human","userId":"bob"}' }],
    ['the verb', { verb: 'grant.revoke' }],
    ['the command', { commandId: 'c-2' }],
    ['the index', { index: 1 }],
  ])('differs with %s', (_part, change) => expect(eventIdOf({ ...parts, ...change })).not.toBe(eventIdOf(parts)));

  it('is not confused by where one part ends and the next begins', () =>
    expect(eventIdOf({ ...parts, verb: 'a', commandId: 'b.c' })).not.toBe(eventIdOf({ ...parts, verb: 'a.b', commandId: 'c' })));
});
