import { AccessContext, Address, CapabilityGrant, CapabilityRequirement, NameId, ToolCall, instantOf } from '@sharedos/contracts';
import { ESCALATE_TOOL } from '@sharedos/kernel';
import type { Bag, Case, Step } from '../runner/case.ts';

/** Operations that no service offers a message for, and why. */
const NO_MESSAGE: Readonly<Record<string, string>> = {
  ...of('a pure function, which no message asks for', [
    ...['derive', 'validateChain', 'constraintViolation', 'constraintMeet', 'capabilityWithin', 'mintRequest'],
  ]),
  invokeResource: 'the executor invokes resources through tools alone',
  listToolNamespaces: 'tool namespaces are a setting of the executor',
  updateToolNamespaces: 'tool namespaces are a setting of the executor',
  moveTool: 'the tools of an executor are those it was started with',
  readAgentCard: 'no message reads an agent card',
  setPolicy: 'a host policy is a port of the embedding host; the services have none to install',
  remove: 'the log forgets nothing',
};

/** Parts of a world that the services have no port for, and why. */
const NO_PORT: Readonly<Record<string, string>> = {
  grantVerifier: 'a verifier of grants is a port of the embedding host',
  hostPolicy: NO_MESSAGE['setPolicy'] as string,
  toolProviders: NO_MESSAGE['moveTool'] as string,
  resourceProviders: NO_MESSAGE['invokeResource'] as string,
  namespaceSettings: NO_MESSAGE['listToolNamespaces'] as string,
  resolverIgnoresNamespace: 'the index of the log finds a grant by namespace and id together',
  liveRevocation: 'the case brings its own source of revocations; over services they are in the log',
  freshness: 'the executor judges the age of a turn request, not of each call',
  views: 'grants bound to a view of a resource are not offered',
};

/** What a case replaces the transport or the router of messages by, and why the services cannot be that. */
const MESSAGING: Readonly<Record<string, string>> = {
  'transport delivers': 'the messaging-router takes messages into its own inboxes, and says that it accepted them',
  'transport wrong-receipt': 'the messaging-router makes its receipts itself',
  'transport absent': 'the messaging-router is always there',
  'router failing': 'replies are found in a stream, and a turn waits for them as long as it lasts',
  'router wrong-reply': 'the messaging-router keeps no reply that does not answer what was asked',
  'router absent': 'the executor always finds the replies that there are',
};

const PORTS_THAT_FAIL = new Set(['grantSource', 'usageStore']);

/** Why a case cannot be run over the services, from what it says alone; nothing where it can. */
export const cannotRun = ({ profile, world, steps }: Case): string | undefined => {
  if (profile === 'mcp') return 'the bridge of an outside harness is shown in process';
  for (const [part, reason] of Object.entries(NO_PORT)) if (part in world && world[part] !== false) return reason;
  const messaging = world['messaging'] as Bag | undefined;
  for (const [part, kind] of Object.entries(messaging ?? {})) {
    const reason = MESSAGING[`${part} ${String(kind)}`];
    if (reason !== undefined) return reason;
  }
  if (world['store'] === 'verbatim') return 'the index of the log returns what it is asked for and nothing else';
  if ((world['missing'] as string[] | undefined)?.length) return 'no port of a running service is missing';
  const down = [
    ...((world['outages'] as string[] | undefined) ?? []),
    ...steps.flatMap(({ op, input }) => (op === 'setOutage' ? [input?.['port']] : [])),
  ];
  const standing = down.find((port) => !PORTS_THAT_FAIL.has(port as string));
  if (standing !== undefined) return `the services have no ${String(standing)} that could fail by itself`;
  const tools = (world['tools'] as Bag[] | undefined) ?? [];
  if (tools.some(({ nested }) => nested !== undefined)) return 'a tool of the executor is handed no kernel to act through';
  return unholdable(world) ?? first(steps, (step) => unaskable(world, step));
};

/** What the log cannot hold: it takes grants that meet their contract, each id once. */
const unholdable = (world: Bag): string | undefined => {
  const grants = [...(world['grants'] as Bag[]), ...((world['parents'] as Bag[] | undefined) ?? [])];
  const ids = new Set<string>();
  for (const grant of grants) {
    const parsed = CapabilityGrant.safeParse(grant);
    if (!parsed.success || !NameId.safeParse(parsed.data.id).success) return 'the log cannot hold a malformed grant';
    const key = JSON.stringify([parsed.data.namespaceId, parsed.data.id]);
    if (ids.has(key)) return 'the log takes the id of a grant once';
    ids.add(key);
    const { revokedAt } = parsed.data;
    if (revokedAt !== undefined && (instantOf(revokedAt) ?? 0) > (instantOf(world['clock'] as string) ?? 0))
      return 'a revocation counts from its place in the log on, whatever instant it states';
  }
  return undefined;
};

const unaskable = (world: Bag, step: Step): string | undefined => {
  const { op, as = {}, input = {} } = step;
  const reason = NO_MESSAGE[op];
  if (reason !== undefined) return reason;
  if (op === 'parallel') return first(input['steps'] as Step[], (one) => unaskable(world, one));
  const { enabledNamespaces = world['enabledNamespaces'] ?? [], ...fields } = as;
  const context = { ...(world['context'] as Bag), enabledToolNamespaces: enabledNamespaces, now: world['clock'], ...fields };
  if (!AccessContext.safeParse(context).success) return 'a body with such a context is refused at the edge, before anything is decided';
  if (op === 'authorize' || op === 'discover') {
    const { resource, action } = input;
    if (!CapabilityRequirement.safeParse({ resource, action }).success)
      return 'a body with such a request is refused at the edge, before anything is decided';
  }
  if (op === 'sendMessage') {
    if (world['messaging'] === undefined) return MESSAGING['transport absent'];
    if (input['extra'] !== undefined || !Address.safeParse(input['to']).success)
      return 'a body with such an envelope is refused at the edge, before anything is decided';
    if (input['purpose'] !== undefined || input['traceId'] !== undefined)
      return 'a message states its purpose and its trace once, so there is no context that they could differ from';
  }
  if (op === 'runTurn' && world['messaging'] !== undefined)
    return 'no case asks another principal from inside a turn that an executor runs';
  if (op === 'invokeTool') {
    const { tool, arguments: given, callId = 'call', traceId = 'trace', requestedAt = world['clock'] } = input;
    if (!ToolCall.safeParse({ id: callId, tool, arguments: given, traceId, requestedAt }).success)
      return 'the envelope refuses such a call, before the kernel of the turn is asked';
    const isRegistered = tool === ESCALATE_TOOL && world['escalationTool'] === true;
    if (String(tool).startsWith('sharedos.') && !isRegistered) return 'the executor registers no other tool of the kernel’s own';
  }
  if (op === 'issue' && !CapabilityGrant.safeParse(input['grant']).success) return 'the log cannot hold a malformed grant';
  return undefined;
};

const first = <T>(items: readonly T[], why: (item: T) => string | undefined): string | undefined => {
  for (const item of items) {
    const reason = why(item);
    if (reason !== undefined) return reason;
  }
  return undefined;
};

function of(reason: string, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, reason]));
}
