import { describe, expect, it } from 'vitest';
import { capabilityIntersectsCeiling, capabilityMatches } from './matching.ts';
import { alice, capability, carol, read } from './testing/base-world.ts';

const overAlices = { owner: alice };
const covers = (held: ReturnType<typeof capability>, asked: ReturnType<typeof read>, frame = overAlices): boolean =>
  capabilityMatches(held, asked, frame);

describe('a capability over a subtree', () => {
  const held = capability(['Work']);
  it('covers its own root', () => expect(covers(held, read(['Work']))).toBe(true));
  it('covers what lies below', () => expect(covers(held, read(['Work', 'x', 'y']))).toBe(true));
  it('does not cover a sibling that starts with the same letters', () => expect(covers(held, read(['Workbench']))).toBe(false));
  it('does not cover what lies above', () => expect(covers(held, read([]))).toBe(false));
  it('does not cover another letter case', () => expect(covers(held, read(['work']))).toBe(false));
  it('does not cover another Unicode form of the same name', () =>
    expect(covers(capability(['caf\u00e9']), read(['cafe\u0301']))).toBe(false));
  it('does not cover another resource namespace', () => expect(covers(held, read(['Work'], { namespace: 'repo' }))).toBe(false));
  it('does not cover a namespace that starts with its own', () =>
    expect(covers(held, read(['Work'], { namespace: 'files.x' }))).toBe(false));
  it('does not read a star in a path as anything but a name', () => expect(covers(capability(['*']), read(['Work']))).toBe(false));
  it('covers the whole namespace from its empty path', () => expect(covers(capability([]), read(['any', 'where']))).toBe(true));
});

describe('an exact capability', () => {
  const held = capability(['Work'], { scope: 'exact' });
  it('covers its path', () => expect(covers(held, read(['Work']))).toBe(true));
  it('does not cover what lies below', () => expect(covers(held, read(['Work', 'x']))).toBe(false));
  it('at the root does not cover a child', () => expect(covers(capability([], { scope: 'exact' }), read(['Work']))).toBe(false));
});

describe('an action', () => {
  const listing = (...actions: string[]) => capability(['Work'], { actions });
  it('is covered when it is listed', () => expect(covers(listing('list', 'read'), read(['Work']))).toBe(true));
  it('is covered by a listed star', () => expect(covers(listing('*'), read(['Work'], { action: 'delete' }))).toBe(true));
  it('is not covered by another action', () => expect(covers(listing('read'), read(['Work'], { action: 'search' }))).toBe(false));
  it('is not covered by a pattern', () => expect(covers(listing('snapshot:*'), read(['Work'], { action: 'snapshot:list' }))).toBe(false));
  it('that is the star itself needs a listed star', () =>
    expect(covers(listing('read', 'search'), read(['Work'], { action: '*' }))).toBe(false));
});

describe('an owner', () => {
  it('left out by both means the owner of the context', () =>
    expect(covers(capability(['Work']), read(['Work']), { owner: carol })).toBe(true));
  it('left out by the request is the owner of the context', () =>
    expect(covers(capability(['Work'], { owner: carol }), read(['Work']))).toBe(false));
  it('left out by the capability follows the context', () =>
    expect(covers(capability(['Work']), read(['Work'], { owner: alice }))).toBe(true));
  it('of another kind with the same id is another owner', () =>
    expect(covers(capability(['Work'], { owner: { kind: 'group', conversationId: 'alice' } }), read(['Work']))).toBe(false));
});

describe('discovering a tool by its declared ceiling', () => {
  const reveals = (held: ReturnType<typeof capability>, path: string[]): boolean =>
    capabilityIntersectsCeiling(held, read(path), overAlices);
  it('is possible with a narrow grant under a broad ceiling', () => expect(reveals(capability(['A'], { scope: 'exact' }), [])).toBe(true));
  it('is possible with a broad subtree over a narrow ceiling', () => expect(reveals(capability(['A']), ['A', 'x'])).toBe(true));
  it('is not possible with an exact path above the ceiling', () =>
    expect(reveals(capability(['A'], { scope: 'exact' }), ['A', 'x'])).toBe(false));
  it('is not possible beside it', () => expect(reveals(capability(['A', 'y']), ['A', 'x'])).toBe(false));
  it('is not possible with another action', () => expect(reveals(capability(['A'], { actions: ['list'] }), [])).toBe(false));
});
