/** Values that the examples share: one small world in which alice lets the agent scout read her notes. */
export const at = '2026-01-01T12:00:00.000Z';
export const later = '2026-01-01T12:00:01.500Z';
export const revision = 'store-1@42';
export const hash = 'a3f5c1d2e4b6978812345678901234567890abcdefabcdefabcdefabcdefabcd';

export const alice = { kind: 'human', userId: 'alice' };
export const bob = { kind: 'human', userId: 'bob' };
export const scout = { kind: 'agent', agentId: 'scout' };

export const notes = { namespace: 'files', path: ['notes'], owner: alice };
export const plan = { namespace: 'files', path: ['notes', 'plan.md'], owner: alice };
export const error = { code: 'grant_not_found', message: 'no such grant', retryable: false };

/** Signed by nobody: only the shape is shown. */
export const sealed = {
  head: { version: '1', namespaceId: 'demo', count: 3, sequence: 17, chain: hash, at, keyId: 'key-1' },
  signature: 'A'.repeat(86),
};

export const message = {
  version: '1',
  id: 'message-1',
  sender: alice,
  receiver: scout,
  purpose: 'summarise notes',
  payload: { text: 'What is in my notes?' },
  traceId: 'trace-1',
  createdAt: at,
};

export const context = {
  namespaceId: 'demo',
  actor: scout,
  authority: alice,
  owner: alice,
  purpose: 'summarise notes',
  traceId: 'trace-1',
  enabledToolNamespaces: ['files'],
  now: at,
};

export const terms = {
  id: 'grant-1',
  subject: scout,
  capabilities: [{ resource: { namespace: 'files', path: ['notes'] }, actions: ['read'], scope: 'descendants' }],
  constraints: { purposes: ['summarise notes'], expiresAt: '2026-12-31T00:00:00Z', maxUses: 5 },
};

export const grant = {
  id: 'grant-1',
  namespaceId: 'demo',
  subject: scout,
  issuer: alice,
  capabilities: [{ resource: notes, actions: ['read'], scope: 'descendants' }],
  constraints: { maxUses: 5 },
  issuedAt: at,
};

export const decided = {
  version: '1',
  id: 'audit-1',
  type: 'authorization.checked',
  outcome: 'allowed',
  at,
  traceId: 'trace-1',
  namespaceId: 'demo',
  actor: scout,
  authority: alice,
  owner: alice,
  purpose: 'summarise notes',
  resource: plan,
  action: 'read',
  grantId: 'grant-1',
  operationId: 'call-1',
};

export const toolResult = {
  status: 'succeeded',
  callId: 'call-1',
  tool: 'files.read',
  completedAt: later,
  output: { content: 'buy milk' },
};
export const event = {
  version: '1',
  eventId: 'event-1',
  executionId: 'turn-1',
  traceId: 'trace-1',
  sequence: 0,
  type: 'tool.called',
  data: {},
  occurredAt: at,
};
export const executionResult = {
  status: 'succeeded',
  version: '1',
  executionId: 'turn-1',
  traceId: 'trace-1',
  events: [event],
  startedAt: at,
  completedAt: later,
  output: { calls: 1 },
};
export const use = { grantId: 'grant-1', ordinal: 3, epoch: 'run-1:1' };
export const heldUse = { grantId: 'grant-1', ordinal: 3, operation: 'operation-1' };

const { authority: _authority, enabledToolNamespaces: _namespaces, ...visible } = context;

/** The first step of a turn that scout, in another process, is asked for. */
export const remoteStep = {
  token: 'eyJhY3RvciI6ImFnZW50OnNjb3V0In0.c2lnbmVk',
  step: 0,
  deadline: later,
  turn: {
    version: '1',
    executionId: 'turn-1',
    agent: scout,
    context: { ...visible, reach: { status: 'computed', reach: [] } },
    message,
    catalogHash: hash,
    tools: [
      {
        name: 'files.read',
        description: 'Reads a file.',
        inputSchema: { type: 'object' },
        metadata: { namespace: 'files', source: 'sharedos' },
      },
    ],
  },
  input: { type: 'start' },
};

export const stepAnswer = {
  token: remoteStep.token,
  step: 0,
  decision: { type: 'tool_call', call: { id: 'call-1', tool: 'files.read', arguments: { path: ['notes', 'plan.md'] } } },
  memory: { seen: [] },
};
