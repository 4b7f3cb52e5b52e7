import type { JsonObj } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { McpRequirementError, mcpCeiling, mcpPath } from './mcp-requirement.ts';

const of = (...path: string[]) => ({ path, action: 'read' });
const customer = of('customers', '{arguments.customerId}');

describe('what a call of an MCP tool needs', () => {
  it.each<[ReturnType<typeof of>, JsonObj, readonly string[]]>([
    [of('tools', 'echo'), { message: 'x' }, ['tools', 'echo']],
    [customer, { customerId: 'acme' }, ['customers', 'acme']],
    [customer, { customerId: 42 }, ['customers', '42']],
    [of('{arguments.customer.id}'), { customer: { id: 'acme' } }, ['acme']],
    [of('files', '{...arguments.path}'), { path: '/notes/plan.md' }, ['files', 'notes', 'plan.md']],
    [of('files', '{...arguments.path}'), { path: '/' }, ['files']],
  ])('is its path with the arguments in it', (requirement, args, path) => expect(mcpPath(requirement, args)).toEqual(path));

  it.each<[string, ReturnType<typeof of>, JsonObj]>([
    ['a missing argument', customer, {}],
    ['nothing', customer, { customerId: null }],
    ['an empty text', customer, { customerId: '' }],
    ['a list', customer, { customerId: ['acme'] }],
    ['a truth', customer, { customerId: true }],
    ['a number that is not whole', customer, { customerId: 1.5 }],
    ['a way up', customer, { customerId: '..' }],
    ['several segments for one', customer, { customerId: 'acme/blue' }],
    ['white space around it', customer, { customerId: ' acme' }],
    ['a control character', customer, { customerId: 'ac\u0000me' }],
    ['a backslash', customer, { customerId: 'ac\\me' }],
    ['a member that every object has', of('{arguments.constructor.name}'), {}],
    ['a way up in the middle', of('{...arguments.path}'), { path: 'notes/../private' }],
    ['an empty segment', of('{...arguments.path}'), { path: 'notes//plan.md' }],
    ['a slash at the end', of('{...arguments.path}'), { path: 'notes/' }],
  ])('is refused to be made of %s', (_, requirement, args) => expect(() => mcpPath(requirement, args)).toThrow(McpRequirementError));

  it('lies at or below what stands before its first argument', () => {
    expect(mcpCeiling(customer)).toEqual(['customers']);
    expect(mcpCeiling(of('tools', 'echo'))).toEqual(['tools', 'echo']);
    expect(mcpCeiling(of('{arguments.id}', 'x'))).toEqual([]);
  });
});
