import {
  alice,
  at,
  bob,
  context,
  decided,
  error,
  event,
  executionResult,
  grant,
  hash,
  heldUse,
  later,
  message,
  plan,
  remoteStep,
  revision,
  scout,
  sealed,
  stepAnswer,
  terms,
  toolResult,
  use,
} from './example-parts.ts';

export interface Examples {
  readonly valid: Readonly<Record<string, unknown>>;
  readonly invalid: Readonly<Record<string, unknown>>;
}

/**
 * Rules that JSON Schema cannot state or that zod drops on the way there. The schema accepts an example of such a rule and our
 * parser refuses it; each is named here with the reason, and the test fails when one turns out to be stated after all.
 */
export const OUTSIDE_THE_SCHEMA: Readonly<Record<string, string>> = {
  'nothing-asked': 'a patch that says something is judged over two fields',
  'blank-id': 'identifiers are trimmed before their length is judged',
  'repeated-tool-namespace': 'uniqueness is judged after trimming',
  'path-traversal': 'segments that are `.` or `..` are refused by a refinement',
  'path-separator': 'separators and control characters in a segment are refused by a refinement',
  'window-backwards': 'notBefore ≤ expiresAt compares two fields as instants',
  'own-parent': 'parentGrantId ≠ id compares two fields',
  'no-offset-colon': 'RFC 3339 as we read it is narrower than `date-time` of the validator',
};

const notAllowed = { outcome: 'denied', reason: 'no_matching_grant' };
const retraced = {
  answer: { status: 'same' },
  from: { revision, admittedAt: at, at, mode: 'execute', consume: true },
  computed: notAllowed,
  grantsResolved: 1,
  grants: [{ grant, reason: 'capability' }],
};
const act = { principal: alice, at, revision, eventId: '5f0c7f0e-6f1c-5b7e-9a55-0c1c5ad0a001', correlationId: 'trace-1' };
const lineage = { links: [{ grant, issued: act, revoked: act }] };

const noRoute = { status: 'none', lease: 0, revokedThrough: 0 };
const openRoute = { status: 'open', lease: 3, revokedThrough: 1, openedAt: at, expiresAt: later };

const reply = (value: unknown, extra: Partial<Examples> = {}): Examples => ({
  valid: { ok: { ok: true, value }, refused: { ok: false, error }, ...extra.valid },
  invalid: {
    'ok-without-value': { ok: true },
    'refused-without-error': { ok: false },
    'refused-with-value': { ok: false, error, value },
    'ok-as-text': { ok: 'true', value },
    ...extra.invalid,
  },
});

/** A body that is an object: without each required member, and with a member nobody knows. */
const object = (valid: Record<string, unknown>, required: readonly string[], extra: Partial<Examples> = {}): Examples => ({
  valid: { minimal: valid, ...extra.valid },
  invalid: {
    'unknown-key': { ...valid, surprise: true },
    'not-an-object': [valid],
    ...Object.fromEntries(required.map((key) => [`without-${key}`, without(valid, key)])),
    ...extra.invalid,
  },
});
const without = (value: Record<string, unknown>, key: string): unknown =>
  Object.fromEntries(Object.entries(value).filter(([name]) => name !== key));

const request = { version: '1', executionId: 'turn-1', agent: scout, message, requestedAt: at };
const listed = { state: { calls: [{ id: 'call-1', tool: 'files.read', arguments: { path: ['notes', 'plan.md'] } }] } };
const send = { id: 'message-1', receiver: bob, purpose: 'hand over', payload: { done: true }, traceId: 'trace-1', createdAt: at };
const question = {
  id: 'ask-1',
  requester: scout,
  owner: alice,
  authority: alice,
  reviewer: alice,
  purpose: 'clean up',
  reason: 'the archive is in the way',
  traceId: 'trace-1',
  requestedAt: at,
};
const askedCall = { id: 'call-1', tool: 'files.replace', arguments: { path: ['archive', 'old.md'], content: '' }, digest: hash };
const mcpPlace = { kind: 'http', url: 'https://crm.example/mcp' };
const mcpTool = {
  name: 'read_customer',
  description: 'Read a customer.',
  inputSchema: { type: 'object', properties: { customerId: { type: 'string' } } },
  readOnly: true,
  hash,
  requirement: { path: ['customers', '{arguments.customerId}'], action: 'read' },
};
const inboxRules = { blocked: [bob], perMinuteMax: 60, perSenderPerMinuteMax: 6 };
const summary = { executionId: 'turn-1', state: 'succeeded', agent: scout, traceId: 'trace-1', at: later };
const timeline = [
  { at, what: 'claimed', by: 'executor-1' },
  { at, what: 'admitted', callId: 'call-1', tool: 'files.read' },
  { at, what: 'settled', callId: 'call-1', tool: 'files.read', status: 'succeeded' },
  { at: later, what: 'ended', status: 'cancelled', code: 'turn_cancelled', by: 'recovery' },
  { at: later, what: 'resolved', callId: 'call-2', outcome: 'happened', by: alice },
];
const operationName = { kind: 'execution', requester: alice, operationId: 'turn-1' };
const operationSummary = { ...operationName, state: 'unknown', agent: scout, traceId: 'trace-1', at, unknownCalls: ['call-2'] };
const opened = { token: 'token', revision, admittedAt: at, validUntil: later };
const snapshot = { hash, grantIds: ['grant-1'], grantCount: 1, loadedAt: at };
const ask = { kind: 'authorize', request: { resource: plan, action: 'read' }, consume: true, operation: 'operation-1' };
const call = {
  kind: 'tool',
  ceiling: { resource: { namespace: 'files', path: [] }, action: 'read' },
  exact: { requirement: { resource: plan, action: 'read' } },
  operation: 'operation-1',
  operationId: 'call-1',
};
const verdict = { revision, status: 'allowed', code: 'allowed', use, audit: [decided] };
const claimed = {
  type: 'claimed',
  at,
  ownerId: 'executor-1',
  turnId: 'turn-id-1',
  fingerprint: hash,
  requester: alice,
  operationId: 'turn-1',
  traceId: 'trace-1',
  agent: scout,
  requestSequence: 7,
};
const atNight = {
  id: 'night',
  effect: 'forbid',
  namespaces: ['files'],
  path: ['archive'],
  actions: ['write', 'delete'],
  actors: [scout],
  purposes: ['clean up'],
  daily: { from: '22:00', to: '06:00' },
  reason: 'the archive is copied at night',
};
const explained = {
  revision,
  admittedAt: at,
  decision: { allowed: false, reasonCode: 'no_matching_grant' },
  grantsResolved: 2,
  rejections: [{ grantId: 'grant-1', reason: 'window' }],
  omitted: 1,
  usage: { 'grant-2': 3 },
};
const rules = { language: 'sharedos.rules/1', rules: [atNight, { id: 'frozen', effect: 'freeze', actor: scout }] };
const stop = { target: { kind: 'agent', agent: scout }, reason: 'it deletes files', by: alice, at };
const policy = { document: rules, stops: [stop], version: 4 };
const agent = {
  terms: { agentId: 'scout', authority: alice, owner: bob, runtime: { runtime: 'scripted', config: {} } },
  status: 'proposed',
  consents: [alice],
  version: 1,
  at,
};
const choice = { commandId: 'command-1', by: alice, update: { enable: ['repo'] }, whenUnset: ['files'] };
const logEvent = {
  eventId: '0190a3f0-7b1c-5d2e-8f00-0123456789ab',
  type: 'GrantIssued',
  schemaVersion: 1,
  at,
  principal: alice,
  correlationId: 'command-1',
  data: { type: 'GrantIssued', grant },
};

/** Examples of every body on the wire, by its released name. */
export const EXAMPLES: Readonly<Record<string, Examples>> = {
  'turn.request/1': object(request, ['version', 'executionId', 'agent', 'message', 'requestedAt'], {
    valid: {
      scripted: {
        ...request,
        ...listed,
        tools: ['files.read'],
        toolNamespaces: ['files'],
        options: { maxSteps: 8, maxToolCalls: 8, timeoutMs: 30_000 },
      },
      'other-owner': { ...request, owner: bob },
      'of-a-host': { ...request, context: { actor: scout, authority: bob, owner: alice, purpose: 'hand over', traceId: 'trace-1' } },
    },
    invalid: {
      'blank-id': { ...request, executionId: '  ' },
      'long-id': { ...request, executionId: 'x'.repeat(257) },
      'agent-is-human': { ...request, agent: alice },
      'zero-steps': { ...request, options: { maxSteps: 0 } },
      'too-long': { ...request, options: { timeoutMs: 600_001 } },
      'tool-with-space': { ...request, tools: ['files read'] },
      'repeated-tool-namespace': { ...request, toolNamespaces: ['files', 'files'] },
      'states-authority': { ...request, authority: bob },
      'states-half-a-context': { ...request, context: { actor: scout, authority: bob } },
      'states-the-time': { ...request, context: { actor: scout, authority: bob, owner: bob, purpose: 'p', traceId: 't', now: at } },
      'message-without-sender': { ...request, message: without(message, 'sender') },
      'no-offset-colon': { ...request, requestedAt: '2026-01-01t12:00:00z' },
      'other-version': { ...request, version: '2' },
    },
  }),
  'turn.get/1': object({ executionId: 'turn-1' }, ['executionId']),
  'turn.get.reply/1': reply(
    { summary, result: executionResult },
    {
      valid: {
        running: { ok: true, value: { summary: { executionId: 'turn-1', state: 'running' } } },
        'with-its-timeline': { ok: true, value: { summary, result: executionResult, timeline } },
      },
      invalid: { 'timeline-with-an-output': { ok: true, value: { summary, timeline: [{ ...timeline[0], output: 'text' }] } } },
    },
  ),
  'turn.list/1': object({}, [], {
    valid: {
      narrowed: { limit: 20, state: 'running', since: at },
      'of-another': { requester: bob, agent: scout },
      'of-everyone': { requester: 'everyone' },
    },
    invalid: { 'requester-unknown-word': { requester: 'nobody' }, 'limit-zero': { limit: 0 }, 'state-unknown': { state: 'asleep' } },
  }),
  'operation.show/1': object(operationName, ['kind', 'requester', 'operationId'], {
    valid: { 'of-a-message': { kind: 'message', requester: bob, operationId: 'message-1' } },
    invalid: { 'kind-unknown': { ...operationName, kind: 'tool' } },
  }),
  'operation.reply/1': reply({ operation: operationSummary, timeline, ledgerRevision: 12 }),
  'operation.list/1': object({}, [], {
    valid: { narrowed: { state: 'unknown', kind: 'execution', requester: alice, since: at, limit: 20 } },
    invalid: { 'limit-high': { limit: 201 }, 'state-unknown': { state: 'lost' } },
  }),
  'operation.list.reply/1': reply({ operations: [operationSummary], more: false }),
  'operation.resolve/1': object({ ...operationName, callId: 'call-2', outcome: 'did_not_happen' }, ['callId', 'outcome'], {
    valid: {
      happened: {
        ...operationName,
        callId: 'call-2',
        outcome: 'happened',
        output: { version: 3 },
        note: 'seen in the folder',
        expectedLedgerRevision: 12,
      },
    },
    invalid: {
      'outcome-unsure': { ...operationName, callId: 'call-2', outcome: 'unsure' },
      'note-empty': { ...operationName, callId: 'call-2', outcome: 'happened', note: '' },
      'revision-zero': { ...operationName, callId: 'call-2', outcome: 'happened', expectedLedgerRevision: 0 },
    },
  }),
  'turn.list.reply/1': reply({ turns: [summary] }),
  'turn.cancel/1': object({ executionId: 'turn-1' }, ['executionId'], {
    valid: { 'of-another': { executionId: 'turn-1', requester: bob } },
  }),
  'turn.cancel.reply/1': reply({ outcome: 'cancelling' }, { invalid: { 'outcome-unknown': { ok: true, value: { outcome: 'maybe' } } } }),
  'turn.result/1': object({ result: executionResult, revision }, ['result'], {
    valid: { denied: { result: { ...(without(executionResult, 'output') as object), status: 'denied', error } } },
    invalid: {
      'failed-without-error': { result: { ...executionResult, status: 'failed' } },
      'revision-without-position': { result: executionResult, revision: 'store-1' },
    },
  }),
  'turn.event/1': object(event, ['eventId', 'sequence', 'occurredAt'], { invalid: { 'sequence-negative': { ...event, sequence: -1 } } }),
  'turn.refused/1': object({ sequence: 7, error }, ['sequence', 'error'], {
    valid: { named: { sequence: 7, executionId: 'turn-1', error } },
  }),
  'runtime.step/1': object(remoteStep, ['token', 'step', 'deadline', 'turn', 'input'], {
    valid: {
      'after-a-call': { ...remoteStep, step: 1, input: { type: 'tool_result', result: toolResult }, memory: { seen: ['call-1'] } },
    },
    invalid: {
      'tool-with-its-requirement': {
        ...remoteStep,
        turn: { ...remoteStep.turn, tools: [{ ...remoteStep.turn.tools[0], requiredCapability: { resource: plan, action: 'read' } }] },
      },
      'context-with-authority': { ...remoteStep, turn: { ...remoteStep.turn, context: { ...remoteStep.turn.context, authority: alice } } },
      'step-negative': { ...remoteStep, step: -1 },
    },
  }),
  'runtime.step.reply/1': reply(stepAnswer, {
    valid: { 'decision-that-is-none': { ok: true, value: { ...stepAnswer, decision: 'done' } } },
    invalid: { 'without-token': { ok: true, value: { step: 0, decision: stepAnswer.decision } } },
  }),
  'execution.control/1': object({ turnId: 'turn-id-1', ask: 'alive' }, ['turnId', 'ask'], {
    invalid: { 'ask-unknown': { turnId: 'turn-id-1', ask: 'run' } },
  }),
  'execution.control.reply/1': reply({ running: true }),

  'grant.issue/1': object({ commandId: 'command-1', grant: terms }, ['commandId', 'grant'], {
    invalid: {
      'no-capability': { commandId: 'command-1', grant: { ...terms, capabilities: [] } },
      'states-issued-at': { commandId: 'command-1', grant: { ...terms, issuedAt: at } },
      'uses-zero': { commandId: 'command-1', grant: { ...terms, constraints: { maxUses: 0 } } },
      'scope-unknown': { commandId: 'command-1', grant: { ...terms, capabilities: [{ ...terms.capabilities[0], scope: 'all' }] } },
      'path-traversal': issuing({ path: ['notes', '..'] }),
      'path-separator': issuing({ path: ['notes/plan.md'] }),
      'path-too-deep': issuing({ path: Array.from({ length: 65 }, () => 'a') }),
      'window-backwards': {
        commandId: 'command-1',
        grant: { ...terms, constraints: { notBefore: '2026-02-01T00:00:00Z', expiresAt: '2026-01-01T00:00:00Z' } },
      },
    },
  }),
  'grant.derive/1': object({ commandId: 'command-2', parentGrantId: 'grant-1', grant: { ...terms, id: 'grant-2' } }, [
    'commandId',
    'parentGrantId',
    'grant',
  ]),
  'grant.revoke/1': object({ commandId: 'command-3', grantId: 'grant-1' }, ['commandId', 'grantId'], {
    valid: { explained: { commandId: 'command-3', grantId: 'grant-1', reason: 'done' } },
  }),
  'grant.get/1': object({ grantId: 'grant-1' }, ['grantId']),
  'grant.reply/1': reply(
    { grant, revision },
    { invalid: { 'own-parent': { ok: true, value: { grant: { ...grant, parentGrantId: 'grant-1' }, revision } } } },
  ),
  'grant.list/1': object({ role: 'issuer' }, ['role'], {
    valid: {
      paged: { role: 'subject', limit: 100, after: 'grant-1' },
      filtered: { role: 'issuer', state: 'live', subject: scout, issuer: alice, revision },
    },
    invalid: { 'role-unknown': { role: 'owner' }, 'state-unknown': { role: 'issuer', state: 'expired' } },
  }),
  'grant.list.reply/1': reply({ grants: [grant], next: 'grant-1', revision }),
  'grant.tree/1': object({ grantId: 'grant-1' }, ['grantId'], {
    valid: { 'next-page': { grantId: 'grant-1', depth: 16, limit: 500, after: ['grant-1', 'grant-2'], revision } },
    invalid: { 'too-deep': { grantId: 'grant-1', depth: 17 }, 'after-nothing': { grantId: 'grant-1', after: [] } },
  }),
  'grant.tree.reply/1': reply({ nodes: [{ depth: 0, grant }], next: ['grant-1'], revision }),
  'grant.watch/1': object({ after: revision }, ['after'], {
    valid: { patient: { after: revision, waitMs: 20_000, limit: 10 } },
    invalid: { 'too-patient': { after: revision, waitMs: 20_001 }, 'after-an-instant': { after: at } },
  }),
  'grant.watch.reply/1': reply({ grants: [grant], revision }),
  'grant.explain/1': object(
    {
      actor: scout,
      authority: alice,
      purpose: 'read notes',
      request: { resource: { namespace: 'files', path: ['notes'] }, action: 'read' },
    },
    ['actor', 'authority', 'purpose', 'request'],
  ),
  'grant.explain.reply/1': reply(explained),
  'authority.explain/1': object({ context, request: { resource: { namespace: 'files', path: ['notes'] }, action: 'read' } }, [
    'context',
    'request',
  ]),
  'authority.explain.reply/1': reply(explained),
  'authority.recompute/1': object({ decisions: [decided] }, ['decisions'], {
    valid: { supposing: { decisions: [decided], suppose: { kind: 'revoke', grantId: 'grant-1' } } },
    invalid: { 'of-nothing': { decisions: [] } },
  }),
  'authority.recompute.reply/1': reply({
    answers: [
      { status: 'same' },
      { status: 'differs', computed: notAllowed, fields: ['outcome', 'reason', 'grant'] },
      { status: 'no_basis', why: 'outage' },
    ],
  }),
  'authority.retrace/1': object({ decision: decided }, ['decision']),
  'authority.retrace.reply/1': reply(retraced),
  'authority.lineage/1': object({ grantId: 'grant-1' }, ['grantId']),
  'authority.lineage.reply/1': reply(lineage),
  'grant.who/1': object({ resource: { namespace: 'files', path: ['notes'] }, action: 'read' }, ['resource', 'action'], {
    valid: {
      'next-page': {
        resource: { namespace: 'files', path: ['notes'], owner: alice },
        action: 'read',
        purpose: 'read notes',
        revision,
        limit: 200,
        after: { of: 'owner', grantId: 'grant-1' },
      },
    },
    invalid: { 'page-too-large': { resource: { namespace: 'files', path: [] }, action: 'read', limit: 201 } },
  }),
  'grant.who.reply/1': reply({ holders: [{ subject: scout, authority: alice, grantId: 'grant-1' }], revision }),
  'authority.who/1': object({ resource: { namespace: 'files', path: ['notes'], owner: alice }, action: 'read' }, ['resource', 'action'], {
    valid: {},
    invalid: { 'of-nobody': { resource: { namespace: 'files', path: ['notes'] }, action: 'read' } },
  }),
  'authority.who.reply/1': reply({ holders: [], next: { of: 'several', grantId: 'grant-1' }, revision }),

  'policy.set/1': object({ commandId: 'command-1', document: rules }, ['commandId', 'document'], {
    valid: {
      'of-a-version': { commandId: 'command-1', document: { language: 'sharedos.rules/1', rules: [] }, expectedVersion: 3 },
      'other-language': { commandId: 'command-1', document: { language: 'cedar/4', source: 'permit(principal, action, resource);' } },
    },
    invalid: {
      'effect-allow': { commandId: 'command-1', document: { ...rules, rules: [{ id: 'all', effect: 'allow' }] } },
      'minute-60': { commandId: 'command-1', document: { ...rules, rules: [{ ...atNight, daily: { from: '22:60', to: '06:00' } }] } },
      'no-action': { commandId: 'command-1', document: { ...rules, rules: [{ ...atNight, actions: [] }] } },
      'freezes-an-action': { commandId: 'command-1', document: { ...rules, rules: [{ id: 'f', effect: 'freeze', actions: ['read'] }] } },
      'language-of-ours-unknown': { commandId: 'command-1', document: { language: 'sharedos.rules/2', source: {} } },
      'version-negative': { commandId: 'command-1', document: rules, expectedVersion: -1 },
    },
  }),
  'policy.get/1': object({}, []),
  'policy.reply/1': reply({ policy, revision }),
  'policy.stop/1': object({ commandId: 'command-1', target: stop.target, reason: 'it deletes files' }, ['commandId', 'target', 'reason'], {
    valid: { namespace: { commandId: 'command-1', target: { kind: 'namespace' }, reason: 'maintenance' } },
    invalid: { 'human-target': { commandId: 'command-1', target: { kind: 'human', userId: 'alice' }, reason: 'r' } },
  }),
  'policy.stop.reply/1': reply({ policy, revision, revokedNow: 2, complete: true }),
  'policy.resume/1': object({ commandId: 'command-1', target: stop.target }, ['commandId', 'target'], {
    valid: { reasoned: { commandId: 'command-1', target: { kind: 'namespace' }, reason: 'done' } },
  }),
  'settings.set/1': object({ commandId: 'command-1', settings: { liveRevocation: true } }, ['commandId', 'settings'], {
    valid: { nothing: { commandId: 'command-1', settings: {} } },
    invalid: {
      'grants-over-limit': { commandId: 'command-1', settings: { grantsPerHolderMax: 100_001 } },
      'setting-unknown': { commandId: 'command-1', settings: { auditOff: true } },
    },
  }),
  'settings.get/1': object({}, []),
  'settings.reply/1': reply({ settings: { liveRevocation: true }, version: 1, revision }),
  'agent.register/1': object({ commandId: 'command-1', terms: agent.terms }, ['commandId', 'terms'], {
    valid: { runtimeless: { commandId: 'command-1', terms: without(agent.terms, 'runtime'), expectedVersion: 0 } },
    invalid: { 'agent-as-address': { commandId: 'command-1', terms: { ...agent.terms, agentId: scout } } },
  }),
  'agent.withdraw/1': object({ commandId: 'command-1', agentId: 'scout' }, ['commandId', 'agentId'], {
    valid: { reasoned: { commandId: 'command-1', agentId: 'scout', reason: 'replaced' } },
  }),
  'agent.get/1': object({ agentId: 'scout' }, ['agentId']),
  'agent.reply/1': reply(
    { agent, revision },
    { invalid: { 'status-unknown': { ok: true, value: { agent: { ...agent, status: 'on' }, revision } } } },
  ),

  'authority.open/1': object(
    { turnId: 'turn-id-1', context, validForMs: 60_000, auditId: 'audit-1' },
    ['turnId', 'context', 'validForMs', 'auditId'],
    {
      invalid: { 'valid-for-ever': { turnId: 'turn-id-1', context, validForMs: 1_300_001, auditId: 'audit-1' } },
    },
  ),
  'authority.open.reply/1': reply(
    { status: 'resolved', ...opened, snapshot },
    {
      valid: {
        unavailable: { ok: true, value: { status: 'unavailable', ...opened, code: 'grant_source_failed' } },
        'asking-about-calls': {
          ok: true,
          value: { status: 'resolved', ...opened, snapshot, boundCalls: true, asksAboutRefusedCalls: true },
        },
      },
    },
  ),
  'authority.decide/1': object(
    { token: 'token', context, question: ask, auditIds: ['audit-1', 'audit-2'] },
    ['token', 'context', 'question', 'auditIds'],
    {
      valid: {
        tool: { token: 'token', context, question: call, auditIds: ['audit-1', 'audit-2'] },
        'the-very-call': { token: 'token', context, question: { ...call, callDigest: hash }, auditIds: ['audit-1', 'audit-2'] },
        'no-requirement': {
          token: 'token',
          context,
          question: { ...call, exact: { failure: 'invalid_tool_arguments' } },
          auditIds: ['audit-1', 'audit-2'],
        },
      },
      invalid: { 'one-audit-id': { token: 'token', context, question: ask, auditIds: ['audit-1'] } },
    },
  ),
  'authority.decide.reply/1': reply(verdict, {
    valid: { denied: { ok: true, value: { revision, status: 'denied', code: 'no_matching_grant', audit: [] } } },
  }),
  'authority.namespace/1': object({}, [], { valid: { 'of-an-agent': { agentId: 'scout' } }, invalid: { 'blank-id': { agentId: ' ' } } }),
  'authority.namespace.reply/1': reply({ revision, settings: {}, policyVersion: 4, toolNamespaces: ['files'], agent }),
  'authority.tools/1': object(choice, ['commandId', 'by', 'update', 'whenUnset'], {
    invalid: { 'nothing-asked': { ...choice, update: {} } },
  }),
  'authority.tools.reply/1': reply({ enabled: ['files', 'repo'], revision }),
  'authority.mcp/1': object({ owner: alice }, ['owner'], {
    valid: {
      'known-already': { owner: alice, known: hash },
      approval: {
        owner: alice,
        change: { commandId: 'command-1', command: { type: 'ApproveMcpServer', server: 'crm', tools: [mcpTool] } },
      },
    },
    invalid: { 'unknown-command': { owner: alice, change: { commandId: 'command-1', command: { type: 'RunMcpServer', server: 'crm' } } } },
  }),
  'authority.mcp.reply/1': reply(
    { hash, servers: [{ server: 'crm', place: mcpPlace, tools: [mcpTool], changed: [] }], revision },
    { valid: { unchanged: { ok: true, value: { hash, revision } } } },
  ),
  'mcp.add/1': object({ commandId: 'command-1', server: 'crm', place: mcpPlace }, ['commandId', 'server', 'place'], {
    valid: { process: { commandId: 'command-1', server: 'memory', place: { kind: 'process', process: 'memory' } } },
    invalid: {
      'a-command': { commandId: 'command-1', server: 'memory', place: { kind: 'process', process: 'memory', command: 'sh' } },
      'underscore-in-name': { commandId: 'command-1', server: 'my_crm', place: mcpPlace },
    },
  }),
  'mcp.list/1': object({}, []),
  'mcp.servers.reply/1': reply({
    servers: [
      {
        server: 'crm',
        place: mcpPlace,
        tools: [{ name: 'mcp.crm.read_customer', requirement: mcpTool.requirement, changed: false }],
        secrets: ['authorization'],
      },
    ],
    revision,
  }),
  'mcp.inspect/1': object({ server: 'crm' }, ['server']),
  'mcp.inspect.reply/1': reply({
    server: 'crm',
    listHash: hash,
    tools: [
      { name: 'read_customer', description: 'Read a customer.', inputSchema: { type: 'object' }, readOnly: true, hash, state: 'approved' },
    ],
    refused: [{ name: 'rm -rf', reason: 'its name is none of a tool here' }],
    gone: [],
  }),
  'mcp.approve/1': object({ commandId: 'command-1', server: 'crm', listHash: hash }, ['commandId', 'server', 'listHash'], {
    valid: {
      some: {
        commandId: 'command-1',
        server: 'crm',
        listHash: hash,
        tools: ['read_customer'],
        requirements: [{ name: 'read_customer', requirement: mcpTool.requirement }],
      },
    },
    invalid: { 'none-named': { commandId: 'command-1', server: 'crm', listHash: hash, tools: [] } },
  }),
  'mcp.remove/1': object({ commandId: 'command-1', server: 'crm' }, ['commandId', 'server']),
  'mcp.secret/1': object({ server: 'crm', name: 'authorization', value: 'Bearer secret' }, ['server', 'name', 'value'], {
    valid: { forget: { server: 'crm', name: 'authorization', value: null } },
    invalid: { 'name-with-a-break': { server: 'crm', name: 'a\nb', value: 'x' } },
  }),
  'mcp.secret.reply/1': reply({ server: 'crm', secrets: ['authorization'] }),
  'tools.namespaces/1': object({}, []),
  'tools.namespaces.reply/1': reply({
    catalog: {
      namespaces: [{ namespace: 'files', sources: ['sharedos'], toolCount: 12, enabled: true }],
      summary: { total: 1, enabled: 1, disabled: 0 },
    },
    revision,
  }),
  'tools.update/1': object({ commandId: 'command-1', update: { enable: ['repo'], disable: ['files'] } }, ['commandId', 'update'], {
    invalid: { 'nothing-asked': { commandId: 'command-1', update: {} } },
  }),
  'tools.list/1': object({ purpose: 'triage', agent: scout, limit: 10 }, ['purpose'], {
    valid: { 'next-page': { purpose: 'triage', after: 'files.read' } },
    invalid: { 'whole-context': { purpose: 'triage', context }, 'limit-over': { purpose: 'triage', limit: 513 } },
  }),
  'tools.list.reply/1': reply({
    tools: [{ name: 'files.read', description: 'Read a file.', inputSchema: { type: 'object' } }],
    total: 2,
    catalogHash: 'a'.repeat(64),
    revision,
    next: 'files.read',
  }),
  'authority.reach/1': object({ token: 'token', context, ceilings: [call.ceiling] }, ['token', 'context', 'ceilings']),
  'authority.reach.reply/1': reply({
    revision,
    reach: { status: 'computed', reach: [{ namespace: 'files', path: ['notes'], actions: ['read'], scope: 'descendants' }] },
    discovered: [{ allowed: true, reasonCode: 'allowed' }],
  }),

  'usage.distrust/1': object({ epoch: use.epoch }, ['epoch']),
  'usage.distrust.reply/1': reply({}),
  'usage.held/1': object({ turn: 'operation-of-a-turn' }, ['turn']),
  'usage.held.reply/1': reply(
    { epoch: use.epoch, uses: [heldUse] },
    { valid: { none: { ok: true, value: { epoch: use.epoch, uses: [] } } } },
  ),
  'usage.release/1': object({ epoch: use.epoch, turn: 'operation-of-a-turn', uses: [heldUse] }, ['epoch', 'turn', 'uses'], {
    invalid: { 'of-nothing': { epoch: use.epoch, turn: 'operation-of-a-turn', uses: [] } },
  }),
  'usage.release.reply/1': reply({}),

  'escalation.list/1': object({}, [], { valid: { open: { status: 'open', limit: 20 } }, invalid: { 'limit-high': { limit: 101 } } }),
  'escalation.list.reply/1': reply({ escalations: [{ question, status: 'open' }], revision }),
  'escalation.show/1': object({ escalationId: 'ask-1' }, ['escalationId']),
  'escalation.reply/1': reply({ escalation: { question, status: 'approved', grant }, revision }),
  'escalation.resolve/1': object(
    { commandId: 'command-1', escalationId: 'ask-1', resolution: { answer: 'approve' } },
    ['commandId', 'escalationId', 'resolution'],
    {
      valid: {
        refusing: { commandId: 'command-1', escalationId: 'ask-1', resolution: { answer: 'refuse', reason: 'not now' } },
        withdrawing: { commandId: 'command-1', escalationId: 'ask-1', resolution: { answer: 'withdraw' } },
      },
      invalid: { 'giving-nothing': { commandId: 'command-1', escalationId: 'ask-1', resolution: { answer: 'approve', capabilities: [] } } },
    },
  ),
  'escalation.open/1': object({ question }, ['question'], {
    valid: { 'about-a-call': { question: { ...question, call: askedCall } } },
    invalid: { 'without-a-digest': { question: { ...question, call: { ...askedCall, digest: 'a' } } } },
  }),
  'escalation.open.reply/1': reply({ escalationId: 'ask-1', revision }),

  'message.send/1': object(send, ['id', 'receiver', 'purpose', 'traceId', 'createdAt'], {
    valid: { answering: { ...send, replyTo: 'message-0' }, expiring: { ...send, expiresAt: later } },
    invalid: { 'receiver-of-no-kind': { ...send, receiver: { userId: 'bob' } } },
  }),
  'message.send.reply/1': reply(
    { status: 'accepted', messageId: 'message-1', timestamp: at },
    { valid: { denied: { ok: true, value: { status: 'denied', messageId: 'message-1', timestamp: at, error } } } },
  ),
  'message.inbox/1': object({}, [], { valid: { paged: { limit: 10, after: 5 } }, invalid: { 'limit-high': { limit: 101 } } }),
  'inbox.message/1': object(message, ['version', 'id', 'sender', 'receiver', 'purpose', 'traceId', 'createdAt']),
  'message.inbox.reply/1': reply({ messages: [{ sequence: 6, message }] }),
  'message.ack/1': object({ sequence: 6 }, ['sequence'], {
    invalid: { 'sequence-zero': { sequence: 0 }, 'sequence-fraction': { sequence: 1.5 } },
  }),
  'message.ack.reply/1': reply({ acknowledged: true }),
  'message.rules/1': object({}, [], {
    valid: { setting: { rules: inboxRules, expectedVersion: 0 } },
    invalid: { 'blocking-a-name': { rules: { blocked: ['bob'] } }, 'none-a-minute': { rules: { blocked: [], perMinuteMax: 0 } } },
  }),
  'message.rules.reply/1': reply({ rules: inboxRules, version: 3 }),
  'inbox.rules/1': object({ blocked: [] }, ['blocked'], { valid: { full: inboxRules } }),
  'message.route/1': {
    valid: {
      show: { act: 'show' },
      open: { act: 'open', ttlMs: 30_000 },
      renew: { act: 'renew', lease: 3, ttlMs: 30_000 },
      pause: { act: 'pause', lease: 3 },
      close: { act: 'close' },
      'close-a-lease': { act: 'close', lease: 3 },
      forget: { act: 'forget' },
    },
    invalid: {
      'act-unknown': { act: 'steal' },
      'open-for-ever': { act: 'open' },
      'open-too-long': { act: 'open', ttlMs: 3_600_001 },
      'renew-nothing': { act: 'renew', ttlMs: 30_000 },
      'lease-zero': { act: 'pause', lease: 0 },
      'unknown-key': { act: 'show', surprise: true },
    },
  },
  'message.route.reply/1': reply({ route: openRoute, live: true, parked: 2 }),
  'route.record/1': {
    valid: { open: openRoute, closed: { status: 'closed', lease: 3, revokedThrough: 3, closedAt: at }, none: noRoute },
    invalid: { 'status-unknown': { ...noRoute, status: 'lost' }, 'without-lease': { status: 'none', revokedThrough: 0 } },
  },
  'message.status/1': object({ id: 'message-1' }, ['id']),
  'message.status.reply/1': reply({ messageId: 'message-1', state: 'parked', at, until: later }),
  'message.take/1': object({ sender: alice, receiver: scout, id: 'message-1', lease: 3 }, ['sender', 'receiver', 'id', 'lease']),
  'message.take.reply/1': reply({ taken: false, code: 'route_closed' }),
  'parked.message/1': object({ context, envelope: message, operation: hash, until: later }, ['context', 'envelope', 'operation', 'until'], {
    valid: { 'of-a-turn': { context, envelope: message, operation: hash, callId: 'call-1', until: later, expiresAt: later } },
  }),
  'message.deliver/1': object({ context, envelope: message, callId: 'call-1', turnId: 'turn-id-1' }, ['context', 'envelope', 'callId'], {
    valid: { 'by-operation': { context, envelope: message, callId: 'call-1', turnId: 'turn-id-1', operation: hash } },
  }),
  'message.deliver.reply/1': reply({ status: 'accepted', messageId: 'message-1', timestamp: at }),
  'message.answer/1': object({ executionId: 'turn-1', message, output: { done: true }, completedAt: later }, ['executionId', 'message'], {
    invalid: { 'with-authority': { executionId: 'turn-1', message, output: null, completedAt: later, authority: alice } },
  }),
  'message.answer.reply/1': reply({ status: 'accepted', messageId: 'message-1', timestamp: at }),
  'message.reply/1': object({ ...message, replyTo: 'message-0' }, ['id', 'sender', 'receiver']),
  'turn.recipient/1': object({ version: '1', executionId: 'turn-1', message, requestedAt: at }, ['executionId', 'message'], {
    valid: { 'under-a-lease': { version: '1', executionId: 'turn-1', message, requestedAt: at, lease: 3 } },
    invalid: { 'with-authority': { version: '1', executionId: 'turn-1', message, requestedAt: at, authority: alice } },
  }),

  'records.query/1': object({}, [], {
    valid: {
      'by-trace': { traceId: 'trace-1', outcome: 'denied', limit: 50 },
      'by-all-else': {
        grantId: 'g1',
        actor: scout,
        resource: { namespace: 'files', path: ['notes'] },
        reason: 'no_matching_grant',
        since: at,
        until: later,
      },
    },
    invalid: { 'type-unknown': { type: 'grant.used' }, 'limit-high': { limit: 501 }, 'resource-as-text': { resource: 'files/notes' } },
  }),
  'records.replay/1': object({ after: 0 }, ['after'], {
    valid: { waiting: { after: 17, limit: 50, waitMs: 20_000, session: 'abc.def' } },
    invalid: { 'wait-too-long': { after: 0, waitMs: 20_001 }, 'before-the-first': { after: -1 } },
  }),
  'records.replay.reply/1': reply(
    {
      records: [{ count: 3, sequence: 17, chain: hash, event: decided }],
      heads: [sealed],
      after: 17,
      headsAfter: 4,
      heldAfter: 0,
      session: 'abc.def',
    },
    { invalid: { 'without-session': { ok: true, value: { records: [], heads: [], after: 17, headsAfter: 4, heldAfter: 0 } } } },
  ),
  'records.summary/1': object({}, [], {
    valid: { 'a-day': { since: at, until: later } },
    invalid: { 'no-instant': { since: 'yesterday' } },
  }),
  'records.summary.reply/1': reply({
    records: 5,
    decisions: { allowed: 3, denied: 1, outages: 1 },
    reasons: [{ reason: 'no_matching_grant', type: 'authorization.checked', outcome: 'denied', outage: false, count: 1 }],
    uses: [{ grantId: 'g1', taken: 2, released: 1, max: 5 }],
    upTo: 17,
  }),
  'records.recompute/1': object({ after: 0 }, ['after'], {
    valid: {
      'supposing-a-revocation': { after: 17, since: at, until: later, limit: 500, suppose: { kind: 'revoke', grantId: 'grant-1' } },
      'supposing-a-grant': { after: 0, suppose: { kind: 'issue', issuer: alice, grant: terms }, session: 'abc.def' },
    },
    invalid: { 'supposing-nothing': { after: 0, suppose: {} }, 'limit-high': { after: 0, limit: 501 } },
  }),
  'records.recompute.reply/1': reply({
    decisions: 3,
    same: 1,
    noBasis: { outage: 1 },
    differing: [
      { record: { sequence: 12, event: decided }, computed: notAllowed, fields: ['outcome', 'reason', 'grant'], turnIsRunning: false },
    ],
    next: 13,
    heldAfter: 0,
    session: 'abc.def',
  }),
  'records.explain/1': object({ id: 'record-1' }, ['id']),
  'records.explain.reply/1': reply({ record: { sequence: 12, event: decided }, retraced }),
  'records.blame/1': object({ operationId: 'call-1' }, ['operationId']),
  'records.blame.reply/1': reply({
    records: [{ sequence: 12, event: decided }],
    grants: [lineage],
    acts: [{ sequence: 13, event: decided }],
  }),
  'audit.head/1': object(sealed, ['head', 'signature'], {
    invalid: { 'count-zero': { ...sealed, head: { ...sealed.head, count: 0 } }, 'signature-short': { ...sealed, signature: 'AAAA' } },
  }),
  'records.query.reply/1': reply({ records: [{ sequence: 12, event: decided }], next: 13, upTo: 20 }),
  'audit.record/1': object(
    decided,
    ['version', 'id', 'type', 'outcome', 'at', 'traceId', 'namespaceId', 'actor', 'authority', 'owner', 'purpose'],
    {
      invalid: { 'carries-arguments': { ...decided, arguments: { path: ['notes'] } }, 'outcome-unknown': { ...decided, outcome: 'maybe' } },
    },
  ),

  'ledger.record/1': object(claimed, ['ownerId', 'turnId', 'fingerprint', 'requester', 'requestSequence'], {
    valid: {
      'claimed-message': { ...claimed, message: { receiver: scout, purpose: 'testing', byTurn: true } },
      opened: { type: 'opened', at, revision, audit: [] },
      admitted: { type: 'admitted', at, callId: 'call-1', use, audit: [decided] },
      'admitted-under-shared-budgets': {
        type: 'admitted',
        at,
        callId: 'call-1',
        use,
        above: [{ ...use, grantId: 'grant-0' }],
        audit: [decided],
      },
      released: { type: 'released', at, callId: 'call-1', uses: [use], audit: [] },
      resolved: { type: 'resolved', at, callId: 'call-1', outcome: 'happened', by: alice, audit: [] },
      'resolved-with-output': {
        type: 'resolved',
        at,
        callId: 'call-1',
        outcome: 'happened',
        output: 3,
        note: 'seen',
        by: alice,
        audit: [],
      },
      expired: { type: 'expired', at: later, endedAt: at },
      'expired-after-a-claim': {
        type: 'expired',
        at: later,
        endedAt: at,
        claim: { fingerprint: hash, requester: alice, operationId: 'turn-1', traceId: 'trace-1', agent: scout },
      },
      'settled-late': { type: 'settled', at, callId: 'call-1', result: toolResult, late: true, audit: [] },
      settled: { type: 'settled', at, callId: 'call-1', result: toolResult, audit: [] },
      ended: { type: 'ended', at, by: 'owner', revision, result: executionResult, audit: [] },
      'ended-parked': {
        type: 'ended',
        at,
        by: 'owner',
        result: { status: 'accepted', messageId: 'message-1', timestamp: at },
        delivery: { type: 'MessageParked', at, until: later },
        audit: [],
      },
      dispatched: { type: 'delivery', at, event: { type: 'MessageDispatched', at, to: 'inbox', lease: 3 }, audit: [decided] },
      revoked: { type: 'delivery', at, event: { type: 'MessageRevoked', at, code: 'route_closed' }, audit: [] },
    },
    invalid: {
      'type-unknown': { type: 'forgotten', at },
      'dispatched-nowhere': { type: 'delivery', at, event: { type: 'MessageDispatched', at }, audit: [] },
      'settled-without-result': { type: 'settled', at, callId: 'call-1', audit: [] },
      'released-nothing': { type: 'released', at, callId: 'call-1', uses: [], audit: [] },
      'expired-with-an-answer': { type: 'expired', at: later, endedAt: at, result: executionResult },
      'settled-not-late': { type: 'settled', at, callId: 'call-1', result: toolResult, late: false, audit: [] },
      'resolved-as-unsure': { type: 'resolved', at, callId: 'call-1', outcome: 'unsure', by: alice, audit: [] },
    },
  }),
  'ledger.use/1': object({ at, grantId: 'grant-1', ordinal: 3, operation: 'operation-1' }, ['at', 'grantId', 'ordinal', 'operation'], {
    valid: { 'of-a-turn': { at, ...heldUse, turn: 'operation-of-a-turn' } },
    invalid: { 'ordinal-zero': { at, grantId: 'grant-1', ordinal: 0, operation: 'operation-1' } },
  }),
  'ledger.use.released/1': object({ at, ...heldUse }, ['at', 'grantId', 'ordinal', 'operation'], {
    invalid: { 'ordinal-zero': { at, ...heldUse, ordinal: 0 } },
  }),
  'log.record/1': {
    valid: { issued: [logEvent] },
    invalid: {
      empty: [],
      'not-a-list': logEvent,
      'id-not-a-uuid': [{ ...logEvent, eventId: 'event-1' }],
      'schema-version-zero': [{ ...logEvent, schemaVersion: 0 }],
      'unknown-key': [{ ...logEvent, surprise: true }],
    },
  },
};

function issuing(resource: { path: readonly string[] }): unknown {
  return {
    commandId: 'command-1',
    grant: { ...terms, capabilities: [{ resource: { namespace: 'files', ...resource }, actions: ['read'], scope: 'exact' }] },
  };
}
