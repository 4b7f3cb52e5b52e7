import {
  type AccessContext,
  type Address,
  type Capability,
  type CapabilityConstraints,
  type CapabilityGrant,
  type CapabilityRequestPayload,
  type CapabilityRequirement,
  type Json,
  type MessageEnvelope,
  PROTOCOL_VERSION,
} from '@sharedos/contracts';
import {
  type DeriveGrantRequest,
  type SharedOSKernel,
  capabilityIsWithin,
  constraintEnvelopeViolation,
  deriveGrant,
  mintCapabilityRequest,
  reachThroughTools,
  tightestConstraints,
  validateDelegationChain,
} from '@sharedos/kernel';
import { type Bag, type Step, UnknownToRunner, checkStep, onlyKnown } from './case.ts';
import { type Observed, observedOf, outcomesOf } from './observed.ts';
import { runScriptedTurn } from './run-turn.ts';
import { Stage } from './stage.ts';

type Operation = (stage: Stage, asked: Asked) => Promise<Bag>;

interface Asked {
  readonly step: Step;
  readonly input: Bag;
  readonly context: AccessContext;
  /** Of the turn that the step names, else one in which no turn is open. */
  readonly kernel: SharedOSKernel;
}

const requirement = ({ resource, action }: Bag): CapabilityRequirement => ({ resource, action }) as CapabilityRequirement;

/** Each operation: the fields its input may have, and how it is done through the kernel's own surface. */
const OPERATIONS: Readonly<Record<string, { readonly input: readonly string[]; readonly run: Operation }>> = {
  authorize: {
    input: ['resource', 'action', 'consume'],
    run: async (_, { kernel, context, input }) => ({
      ...(await kernel.authorize(context, requirement(input), { consume: input['consume'] === true })),
    }),
  },
  discover: {
    input: ['resource', 'action'],
    run: async (_, { kernel, context, input }) => ({ ...(await kernel.canDiscover(context, requirement(input))) }),
  },
  invokeTool: {
    input: ['tool', 'arguments', 'callId', 'traceId', 'requestedAt'],
    run: async (stage, { kernel, context, input }) => {
      const { tool, arguments: given, callId = stage.nextId('call'), traceId = context.traceId, requestedAt = stage.clock } = input;
      const call = { id: callId, tool, arguments: given, traceId, requestedAt };
      return coded(await kernel.invokeTool(context, call as never));
    },
  },
  invokeResource: {
    input: ['operationId', 'resource', 'action', 'input', 'metadata'],
    run: async (_, { kernel, context, input }) => coded(await kernel.invokeResource(context, input as never)),
  },
  listTools: {
    input: [],
    run: async (_, { kernel, context }) => ({ tools: (await kernel.listTools(context)).map(({ name }) => name) }),
  },
  listPublishedTools: {
    input: ['executionId'],
    run: async (_, { kernel, context, input }) => {
      const { executionId = 'execution-1' } = input;
      const catalog = await kernel.listPublishedTools(context, { executionId: executionId as string });
      return { tools: catalog.tools.map(({ name }) => name), catalogHash: catalog.catalogHash, published: catalog.tools };
    },
  },
  listToolNamespaces: {
    input: [],
    run: async (_, { kernel, context }) => ({ ...(await kernel.listToolNamespaces(context)) }),
  },
  updateToolNamespaces: {
    input: ['enable', 'disable'],
    run: async (stage, { kernel, context, input }) => {
      const catalog = await kernel.updateToolNamespaces(context, input);
      stage.enabledNamespaces = catalog.namespaces.filter(({ enabled }) => enabled).map(({ namespace }) => namespace);
      return { ...catalog };
    },
  },
  sendMessage: {
    input: ['to', 'payload', 'sender', 'purpose', 'traceId', 'extra'],
    run: async (stage, { kernel, context, input }) => {
      const { to, payload, sender = context.actor, purpose = context.purpose, traceId = context.traceId, extra } = input;
      const envelope = {
        version: PROTOCOL_VERSION,
        id: stage.nextId('message'),
        sender,
        receiver: to,
        purpose,
        payload,
        traceId,
        createdAt: stage.clock,
        ...(typeof extra === 'string' ? { [extra]: true } : (extra as Bag | undefined)),
      };
      return coded(await kernel.sendMessage(context, envelope as MessageEnvelope));
    },
  },
  admitTurn: {
    input: ['agent'],
    run: async (_, { kernel, context, input }) => ({ ...(await kernel.admitTurn(context, input['agent'] as Address)) }),
  },
  openTurn: {
    input: ['turn'],
    run: async (stage, { context, input }) => {
      const name = input['turn'] as string;
      const open = stage.turns.get(name) ?? { kernel: stage.newKernel(), scopes: [] };
      stage.turns.set(name, open);
      const scope = await open.kernel.openTurnAuthority(context);
      open.scopes.push(scope);
      return { status: scope.status, ...(scope.code === undefined ? {} : { code: scope.code }), ...mismatch(stage) };
    },
  },
  closeTurn: {
    input: ['turn'],
    run: async (stage, { input }) => {
      const name = input['turn'] as string;
      const scopes = stage.turns.get(name)?.scopes ?? [];
      // The last handle stays: closing it again is allowed and changes nothing, and what comes after finds no lease.
      const scope = scopes.length > 1 ? scopes.pop() : scopes[0];
      if (scope === undefined) throw new UnknownToRunner(`no turn ${name} was opened`);
      scope.close();
      return {};
    },
  },
  resolveAuthority: {
    input: [],
    run: async (stage, { kernel, context }) => {
      const scope = await kernel.openTurnAuthority(context);
      scope.close();
      const { status, code, snapshot } = scope;
      return {
        status,
        ...(code === undefined ? {} : { code }),
        ...(snapshot === undefined ? {} : { hash: snapshot.hash }),
        ...mismatch(stage),
      };
    },
  },
  reach: { input: [], run: async (_, { kernel, context }) => ({ ...(await kernel.reach(context)) }) },
  reachThroughTools: {
    input: [],
    run: async (_, { kernel, context }) => {
      const reach = await kernel.reach(context);
      if (reach.status === 'unavailable') return { ...reach };
      return { status: 'computed', reach: reachThroughTools(reach.reach, await kernel.listTools(context)) };
    },
  },
  readAgentCard: {
    input: ['subject', 'view'],
    run: async (_, { kernel, context, input }) => {
      const { subject, view } = input;
      const options = view === undefined ? {} : { view: view as 'reach' };
      return { ...(await kernel.readAgentCard(context, subject as Address, options)) };
    },
  },
  recordEscalation: {
    input: ['reason', 'requestedAuthority'],
    run: async (_, { kernel, context, input }) => {
      const { reason, requestedAuthority } = input;
      const asked = requestedAuthority === undefined ? {} : { requestedAuthority: requestedAuthority as CapabilityRequestPayload };
      return { escalation: await kernel.recordEscalation(context, reason as string, asked) };
    },
  },
  mintRequest: {
    input: ['capabilities', 'purpose', 'constraints', 'metadata'],
    run: async (_, { context, input }) => ({
      request: (await mintCapabilityRequest(context, input as unknown as CapabilityRequestPayload)) ?? null,
    }),
  },
  derive: {
    input: ['parentId', 'request', 'store'],
    run: async (stage, { input }) => {
      const { parentId, request, store } = input;
      const derived = deriveGrant(stage.stored(parentId) as unknown as CapabilityGrant, request as DeriveGrantRequest);
      if (derived.ok && store === true) stage.grants.push(structuredClone(derived.grant));
      return { ...derived };
    },
  },
  validateChain: {
    input: ['grantId'],
    run: async (stage, { context, input }) => {
      const grant = stage.stored(input['grantId']) as unknown as CapabilityGrant;
      const resolver = { resolve: async (...asked: [string, string]) => stage.resolveAncestor(...asked) };
      const verdict = await validateDelegationChain(grant, context, stage.now, stage.hasResolver ? { resolver } : {});
      return { ...verdict, ...('grantId' in verdict ? { atGrant: verdict.grantId } : {}) };
    },
  },
  constraintViolation: {
    input: ['inner', 'outer'],
    run: async (_, { input }) => ({
      value: constraintEnvelopeViolation(input['inner'] as CapabilityConstraints, input['outer'] as CapabilityConstraints) ?? null,
    }),
  },
  constraintMeet: {
    input: ['sets'],
    run: async (_, { input }) => ({ value: tightestConstraints(input['sets'] as CapabilityConstraints[]) ?? null }),
  },
  capabilityWithin: {
    input: ['capability', 'ancestor', 'owner'],
    run: async (_, { input }) => ({
      value: capabilityIsWithin(input['capability'] as Capability, input['ancestor'] as Capability, { owner: input['owner'] as Address }),
    }),
  },
  revoke: {
    input: ['grantId', 'at'],
    run: async (stage, { input }) => {
      stage.stored(input['grantId'])['revokedAt'] = input['at'] ?? stage.clock;
      stage.revoked.add(input['grantId'] as string);
      return {};
    },
  },
  remove: {
    input: ['grantId'],
    run: async (stage, { input }) => {
      const kept = (grant: Bag): boolean => grant['id'] !== input['grantId'];
      stage.grants = stage.grants.filter(kept);
      stage.parents.splice(0, stage.parents.length, ...stage.parents.filter(kept));
      return {};
    },
  },
  issue: {
    input: ['grant'],
    run: async (stage, { input }) => {
      stage.grants.push(structuredClone(input['grant'] as Bag));
      return {};
    },
  },
  setClock: {
    input: ['to'],
    run: async (stage, { input }) => {
      stage.clock = input['to'] as string;
      return {};
    },
  },
  setOutage: {
    input: ['port', 'down'],
    run: async (stage, { input }) => {
      stage.setOutage(input['port'] as string, input['down'] === true);
      return {};
    },
  },
  setPolicy: {
    input: ['mode', 'version', 'deny', 'behaviour'],
    run: async (stage, { input }) => {
      stage.setPolicy(input);
      return {};
    },
  },
  moveTool: {
    input: ['provider', 'tools'],
    run: async (stage, { input }) => {
      stage.moveTool(input['provider'] as string, input['tools'] as Bag[]);
      return {};
    },
  },
  runTurn: {
    input: ['agent', 'script', 'limits', 'messageReceiver', 'channel'],
    run: async (stage, { context, input }) => runScriptedTurn(stage, context, input, (step) => answer(stage, step)),
  },
};

/** The refused grant of a load, which only the record of it names. */
const mismatch = (stage: Stage): Bag => {
  const loaded = stage.audit.findLast(({ type }) => type === 'authority.resolved');
  const rejected = loaded?.metadata?.['rejectedGrants'] as readonly Json[] | undefined;
  return rejected?.[0] === undefined ? {} : { detail: rejected[0] };
};

/** A result with the code of its error beside its status. */
const coded = (result: object): Bag => {
  const { error } = result as { readonly error?: { readonly code: string } };
  return { ...result, ...(error === undefined ? {} : { code: error.code }) };
};

export const knowsOperation = (op: string): boolean => op === 'parallel' || op in OPERATIONS;

/** The errors by which a contract refuses a value; anything else that is thrown is our own fault. */
const CONTRACT_ERRORS = new Set(['ContractError', 'MissingRegistrationError', 'DuplicateRegistrationError']);

const answer = async (stage: Stage, step: Step, inside?: { kernel: SharedOSKernel; context: AccessContext }): Promise<Bag> => {
  checkStep(step);
  const operation = OPERATIONS[step.op];
  if (operation === undefined) throw new UnknownToRunner(`no operation is called ${step.op}`);
  const input = step.input ?? {};
  onlyKnown(`the input of ${step.op}`, input, operation.input);
  const turn = step.turn === undefined ? undefined : stage.turns.get(step.turn);
  if (step.turn !== undefined && turn === undefined) throw new UnknownToRunner(`no turn ${step.turn} was opened`);
  const asked: Asked = {
    step,
    input,
    // A handler acts with the context it was given; the case may still change a field of it.
    context: inside === undefined ? stage.contextOf(step) : { ...inside.context, ...(step.as as Partial<AccessContext>) },
    kernel: inside?.kernel ?? turn?.kernel ?? stage.kernel,
  };
  try {
    return await operation.run(stage, asked);
  } catch (error) {
    if (error instanceof Error && CONTRACT_ERRORS.has(error.name)) return { thrown: error.name };
    // A listing rejects with what its providers threw: that is its answer, and it has no code.
    if (step.op.startsWith('listTools') || step.op === 'listPublishedTools') {
      if (error instanceof Error && error.name === 'Error') return { thrown: error.name };
    }
    throw error;
  }
};

/** The world of a case, whose handlers act through the kernel that invokes them. */
export const newStage = (world: Bag): Stage => {
  const stage: Stage = new Stage(structuredClone(world), (step, kernel, context) => answer(stage, step, { kernel, context }));
  return stage;
};

/** Carries out one step, or several at once, and keeps what came of each under its id. */
export const perform = async (stage: Stage, step: Step): Promise<ReadonlyMap<string, Observed>> => {
  stage.audit = [];
  if (step.op !== 'parallel') return new Map([[step.id, observed(stage, await answer(stage, step))]]);
  onlyKnown('the input of parallel', step.input ?? {}, ['steps']);
  const steps = step.input?.['steps'] as Step[];
  const answers = await Promise.all(steps.map((one) => answer(stage, one)));
  return new Map([
    [step.id, observed(stage, { outcomes: outcomesOf(answers), answers })],
    ...steps.map(({ id }, index): [string, Observed] => [id, observed(stage, answers[index] as Bag)]),
  ]);
};

const observed = (stage: Stage, received: Bag): Observed => {
  const { handlerCalls, ...counts } = stage.counts;
  return observedOf(received, {
    audit: [...stage.audit],
    counts: { ...counts, handlerCalls: Object.fromEntries(handlerCalls) },
    usage: new Map(stage.usage),
  });
};
