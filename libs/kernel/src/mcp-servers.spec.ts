import { MCP_SERVERS_MAX, McpEvent, type McpServer, type McpTool } from '@sharedos/contracts';
import { describe, expect, it } from 'vitest';
import { type McpServersCommand, mcpServers } from './mcp-servers.ts';
import { given } from './testing/given.ts';

const owner = { kind: 'human', userId: 'alice' } as const;
const place = { kind: 'process', process: 'crm' } as const;
const tool = (name: string, more: Partial<McpTool> = {}): McpTool => ({
  name,
  description: 'Reads a customer.',
  inputSchema: { type: 'object', properties: { customerId: { type: 'string' } } },
  readOnly: true,
  hash: 'a'.repeat(64),
  requirement: { path: ['customers', '{arguments.customerId}'], action: 'read' },
  ...more,
});
const add = (server: string, at: McpServer['place'] = place): McpServersCommand => ({ type: 'AddMcpServer', owner, server, place: at });
const approve = (...tools: McpTool[]): McpServersCommand => ({ type: 'ApproveMcpServer', owner, server: 'crm', tools });
const report = (name: string, hash = 'a'.repeat(64)): McpServersCommand => ({
  type: 'ReportMcpToolsChanged',
  owner,
  server: 'crm',
  tools: [{ name, hash }],
});
const remove: McpServersCommand = { type: 'RemoveMcpServer', owner, server: 'crm' };
const added = (server = 'crm'): McpEvent => ({ type: 'McpServerAdded', owner, server, place });
const approved = (...tools: McpTool[]): McpEvent => ({ type: 'McpServerApproved', server: 'crm', tools });
const changed = (...tools: string[]): McpEvent => ({ type: 'McpToolsChanged', server: 'crm', tools });
const removed: McpEvent = { type: 'McpServerRemoved', server: 'crm' };
const read = tool('read');

describe('adding an MCP server', () => {
  it('makes it known, with no tool yet', () => given(mcpServers, []).when(add('crm')).thenEvents(added()));
  it('changes nothing the second time', () => given(mcpServers, [added()]).when(add('crm')).thenNothing());
  it('is refused under a name that another place has', () =>
    given(mcpServers, [added()])
      .when(add('crm', { kind: 'http', url: 'https://crm.example/mcp' }))
      .thenRefused({ code: 'mcp_server_exists' }));
  it('is refused past the number that one owner may have', () =>
    given(
      mcpServers,
      Array.from({ length: MCP_SERVERS_MAX }, (_, n) => added(`s${n}`)),
    )
      .when(add('crm'))
      .thenRefused({ code: 'too_many_mcp_servers' }));
});

describe('approving its tools', () => {
  it('makes them its tools, in order of name', () =>
    given(mcpServers, [added()])
      .when(approve(tool('write'), read))
      .thenEvents(approved(read, tool('write'))));
  it('takes the place of what was approved before', () =>
    given(mcpServers, [added(), approved(read)])
      .when(approve(tool('write')))
      .thenEvents(approved(tool('write'))));
  it('changes nothing where the same is approved', () =>
    given(mcpServers, [added(), approved(read)])
      .when(approve(read))
      .thenNothing());
  it('again, as it is, ends what was seen to have changed', () =>
    given(mcpServers, [added(), approved(read), changed('read')])
      .when(approve(read))
      .thenEvents(approved(read)));
  it('is refused where there is no such server', () =>
    given(mcpServers, [added('mail')])
      .when(approve(read))
      .thenRefused({ code: 'mcp_server_not_found' }));
  it.each([
    [[tool('a'), tool('a')], 'a and a are one name where dots are not allowed'],
    [[tool('a.b_c'), tool('a_b.c')], 'a_b.c and a.b_c are one name where dots are not allowed'],
    [[tool('a', { requirement: { path: ['{arguments.id}'], action: 'read' } })], 'a: the tool has no argument id'],
    [[tool('a', { requirement: { path: ['{arguments.toString}'], action: 'read' } })], 'a: the tool has no argument toString'],
    [[tool('a', { requirement: { path: ['..'], action: 'read' } })], 'a: a part of the path is no segment and no argument'],
    [
      [tool('a', { requirement: { path: ['x{arguments.customerId}'], action: 'read' } })],
      'a: a part of the path is no segment and no argument',
    ],
    [[tool('a', { requirement: { path: ['customers'], action: '*' } })], 'a: a call needs one action'],
  ])('is refused for what no grant could tell apart', (tools, why) =>
    given(mcpServers, [added()])
      .when(approve(...tools))
      .thenRefused({ code: 'mcp_tool_refused', why }),
  );
  it('is refused with more than an owner may have, the other servers counted', () => {
    const many = Array.from({ length: 2_048 }, (_, n) => tool(`t${n}`, { inputSchema: {}, requirement: { path: ['t'], action: 'call' } }));
    given(mcpServers, [added('mail'), { type: 'McpServerApproved', server: 'mail', tools: many }, added()])
      .when(approve(read))
      .thenRefused({ code: 'too_many_mcp_tools' });
  });
  it('is refused with definitions larger than one event may be', () => {
    const large = Array.from({ length: 50 }, (_, n) => tool(`t${n}`, { description: 'x'.repeat(8_000) }));
    given(mcpServers, [added()])
      .when(approve(...large))
      .thenRefused({ code: 'too_many_mcp_tools' });
  });
});

describe('a tool that was seen to have changed', () => {
  it('is off until it is approved again', () =>
    given(mcpServers, [added(), approved(read)])
      .when(report('read'))
      .thenEvents(changed('read')));
  it('is told again where it was approved in between', () =>
    given(mcpServers, [added(), approved(read), changed('read'), approved(read)])
      .when(report('read'))
      .thenEvents(changed('read')));
  it('is told once', () =>
    given(mcpServers, [added(), approved(read), changed('read')])
      .when(report('read'))
      .thenNothing());
  it('is not told of what was approved since', () =>
    given(mcpServers, [added(), approved(tool('read', { hash: 'b'.repeat(64) }))])
      .when(report('read'))
      .thenNothing());
  it('is not told of a server that is gone', () =>
    given(mcpServers, [added(), approved(read), removed])
      .when(report('read'))
      .thenNothing());
});

describe('removing an MCP server', () => {
  it('takes its tools away', () =>
    given(mcpServers, [added(), approved(read)])
      .when(remove)
      .thenEvents(removed));
  it('leaves its name free', () => given(mcpServers, [added(), removed]).when(add('crm')).thenEvents(added()));
  it('is refused where there is none', () => given(mcpServers, []).when(remove).thenRefused({ code: 'mcp_server_not_found' }));
});

it('makes events that meet their contract', () => {
  for (const event of [added(), approved(read), changed('read'), removed]) expect(McpEvent.parse(event)).toEqual(event);
});
