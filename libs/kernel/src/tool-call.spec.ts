import type { CapabilityRequirement, ExactRequirement } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { type World, decideSync } from './asking.ts';
import { TOOL_CALL_WITHOUT_AUTHORITY, type ToolCallDecided, type ToolCallQuestion, decideToolCall } from './tool-call.ts';
import { NOW, authorityOf, capability, carol, grantOf, read, worldOf, ceilingOf } from './testing/base-world.ts';

type Grants = Parameters<typeof authorityOf>[0];
const ceiling = read([]);
const exactly = (requirement: CapabilityRequirement): ExactRequirement => ({ requirement });
const call = (grants: Grants, exact: ExactRequirement, changes: Partial<ToolCallQuestion> & { world?: World } = {}): ToolCallDecided => {
  const { world = worldOf().world, ...question } = changes;
  return decideSync(decideToolCall(authorityOf(grants), { ceiling, exact, now: NOW, ...question }), world);
};
const heard = ({ status, code, cause }: ToolCallDecided): string => [status, code, ...(cause === undefined ? [] : [cause])].join(' ');

const g = grantOf();
const inWork = exactly(read(['Work', 'x']));

describe('a tool call', () => {
  it('is allowed on its exact requirement, and that alone is recorded', () => {
    const verdict = call([g], inWork);
    expect(verdict).toMatchObject({
      status: 'allowed',
      code: 'allowed',
      resource: read(['Work', 'x']).resource,
      action: 'read',
      grantId: 'g',
    });
    expect(verdict.recorded).toMatchObject([{ request: read(['Work', 'x']), consume: true }]);
  });
  it('takes one use, at the exact check alone', () => {
    const { world, asked } = worldOf();
    expect(call([grantOf('g', { maxUses: 2 })], inWork, { world }).usageTaken).toEqual({ grantId: 'g' });
    expect(asked).toEqual(['peek g', 'take g']);
  });
  it('is denied on a resource that the grant which reveals the tool does not cover', () => {
    const verdict = call([g], exactly(read(['Elsewhere'])));
    expect(heard(verdict)).toBe('denied no_matching_grant');
    expect(verdict).toMatchObject({ resource: read(['Elsewhere']).resource, action: 'read' });
    expect(verdict.recorded).toHaveLength(1);
  });
});

describe('a tool that may not be discovered', () => {
  it('is unavailable, and only the record says why', () => {
    const verdict = call([], inWork);
    expect(heard(verdict)).toBe('denied tool_unavailable no_matching_grant');
    expect(verdict.recorded).toMatchObject([
      { request: ceiling, consume: false, mode: 'discover', decided: { decision: { allowed: false } } },
    ]);
    expect(verdict.recorded[0]?.decided.decision).not.toHaveProperty('requiredAuthority');
    expect(verdict).not.toHaveProperty('resource');
  });
  it('answers so before its arguments are spoken of', () =>
    expect(heard(call([], { failure: 'invalid_tool_arguments' }))).toBe('denied tool_unavailable no_matching_grant'));
  it('because its only grant is spent', () =>
    expect(heard(call([grantOf('g', { maxUses: 1 })], inWork, worldOf({ uses: { g: 1 } })))).toBe(
      'denied tool_unavailable grant_exhausted',
    ));
  it('because the counters cannot be asked', () =>
    expect(heard(call([grantOf('g', { maxUses: 1 })], inWork, { world: {} }))).toBe('denied tool_unavailable usage_store_unavailable'));
  it('because its ceiling names another owner', () =>
    expect(heard(call([g], inWork, { ceiling: read([], { owner: carol }) }))).toBe('denied tool_unavailable invalid_request'));
  it('because policy refuses the ceiling, and then nothing is spent', () => {
    const { world, used } = worldOf();
    const refused = call([grantOf('g', { maxUses: 1 })], inWork, { world, hostCeiling: ceilingOf(() => ({ allowed: false })) });
    expect(heard(refused)).toBe('denied tool_unavailable host_policy_denied');
    expect(used('g')).toBe(0);
  });
});

describe('a call of a tool that may be discovered', () => {
  const bounded = [grantOf('g', { maxUses: 1, capabilities: [capability([], { actions: ['*'] })] })];
  it.each<[string, string, ExactRequirement, Partial<ToolCallQuestion>?]>([
    ['whose arguments cannot be read', 'failed invalid_tool_arguments', { failure: 'invalid_tool_arguments' }],
    ['whose requirement cannot be made', 'failed tool_requirement_resolution_failed', { failure: 'tool_requirement_resolution_failed' }],
    ["that needs another owner's resource", 'denied invalid_request', exactly(read(['Work'], { owner: carol }))],
    [
      "that needs another owner's in another namespace: the owner is tested first",
      'denied invalid_request',
      exactly(read(['Work'], { owner: carol, namespace: 'repo' })),
    ],
    ['that needs another action', 'failed invalid_tool_requirement', exactly(read(['Work'], { action: 'delete' }))],
    ['that needs another namespace', 'failed invalid_tool_requirement', exactly(read(['Work'], { namespace: 'repo' }))],
    ['that needs a path beside its ceiling', 'failed invalid_tool_requirement', exactly(read(['Workbench'])), { ceiling: read(['Work']) }],
    ['that needs a path above its ceiling', 'failed invalid_tool_requirement', exactly(read([])), { ceiling: read(['Work']) }],
    ['that needs a path that is none', 'denied invalid_request', exactly(read(['Work', '..']))],
  ])('%s: %s', (_, expected, exact, changes) => {
    const { world, used } = worldOf();
    expect(heard(call(bounded, exact, { world, ...changes }))).toBe(expected);
    expect(used('g')).toBe(0);
  });
  it('records the crossing of an owner as a decision that consumes nothing', () =>
    expect(call(bounded, exactly(read(['Work'], { owner: carol }))).recorded).toMatchObject([
      { consume: false, decided: { decision: { reasonCode: 'invalid_request' } } },
    ]));
  it('records no decision where none was made', () => expect(call(bounded, { failure: 'invalid_tool_arguments' }).recorded).toEqual([]));
  it('is refused at the exact check when a second grant is what reveals the tool', () => {
    const spent = grantOf('spent', { maxUses: 1 });
    const elsewhere = grantOf('other', { capabilities: [capability(['Other'])] });
    expect(heard(call([spent, elsewhere], inWork, worldOf({ uses: { spent: 1 } })))).toBe('denied grant_exhausted');
  });
});

it('a call without authority is denied in one code, with no decision to record', () => {
  expect(heard(TOOL_CALL_WITHOUT_AUTHORITY)).toBe('denied authority_unavailable');
  expect(TOOL_CALL_WITHOUT_AUTHORITY.recorded).toEqual([]);
});
