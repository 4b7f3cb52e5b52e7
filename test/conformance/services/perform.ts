import type { OutgoingMessage } from '@sharedos/client';
import {
  type AccessContext,
  type AgentAddress,
  type CapabilityRequirement,
  type ExecutionOptions,
  PROTOCOL_VERSION,
  type ToolCall,
  sameAddress,
} from '@sharedos/contracts';
import { publishToolDefinition, reachThroughTools, toolCatalogHash } from '@sharedos/kernel';
import { type Bag, type Step, UnknownToRunner } from '../runner/case.ts';
import { type Observed, observedOf, outcomesOf } from '../runner/observed.ts';
import { newScript, turnAnswer } from '../runner/script.ts';
import { ServiceTurn } from './service-turn.ts';
import { HOST } from './system.ts';
import type { ServicesWorld } from './world.ts';

interface Asked {
  readonly input: Bag;
  readonly context: AccessContext;
  /** The turn that the step names, else one of this step alone. */
  readonly turn: ServiceTurn;
}

type Operation = (world: ServicesWorld, asked: Asked) => Promise<Bag>;

const requirement = ({ resource, action }: Bag): CapabilityRequirement => ({ resource, action }) as CapabilityRequirement;

/** Each operation, as it is asked of the services. */
const OPERATIONS: Readonly<Record<string, Operation>> = {
  authorize: async (_, { turn, context, input }) => ({
    ...(await turn.authorize(context, requirement(input), input['consume'] === true)),
  }),
  discover: async (_, { turn, context, input }) => turn.discover(context, requirement(input)),
  invokeTool: async (world, { turn, context, input }) => {
    const { tool, arguments: given, callId = world.nextId('call'), traceId = context.traceId, requestedAt = world.clock } = input;
    const result = await turn.invoke(context, { id: callId, tool, arguments: given, traceId, requestedAt } as ToolCall);
    return { ...result, ...(result.status === 'succeeded' ? {} : { code: result.error.code }) };
  },
  listTools: async (_, { turn }) => ({ tools: (await turn.list()).map(({ name }) => name) }),
  listPublishedTools: async (_, { turn }) => {
    const published = (await turn.list()).map(publishToolDefinition);
    return { tools: published.map(({ name }) => name), catalogHash: toolCatalogHash(published), published };
  },
  admitTurn: async (_, { turn, input }) => ({ ...(await turn.admit(input['agent'] as AgentAddress)) }),
  resolveAuthority: (_, { turn }) => turn.open(),
  reach: async (_, { turn, context }) => ({ ...(await turn.reach(context)) }),
  reachThroughTools: async (_, { turn, context }) => {
    const reach = await turn.reach(context);
    if (reach.status === 'unavailable') return { ...reach };
    return { status: 'computed', reach: reachThroughTools(reach.reach, await turn.list()) };
  },
  recordEscalation: async (_, { turn, context, input }) => ({
    escalation: await turn.ask(context, input['reason'] as string, input['requestedAuthority']),
  }),
  openTurn: async (world, { turn, input }) => {
    const opened = await turn.open();
    world.turns.set(input['turn'] as string, turn);
    const { hash: _, ...answer } = opened;
    return answer;
  },
  // A turn over services is a token: there is nothing to give back, and whatever comes after is another turn.
  closeTurn: async (world, { input }) => {
    if (!world.turns.has(input['turn'] as string)) throw new UnknownToRunner(`no turn ${String(input['turn'])} was opened`);
    return {};
  },
  revoke: async (world, { input }) => {
    await world.revoke(input['grantId'] as string, (input['at'] as string | undefined) ?? world.clock);
    return {};
  },
  issue: async (world, { input }) => {
    world.grants.push(input['grant'] as Bag);
    await world.issue(input['grant'] as Bag);
    return {};
  },
  setClock: async (world, { input }) => {
    world.setClock(input['to'] as string);
    return {};
  },
  setOutage: async (world, { input }) => {
    world.setOutage(input['port'] as string, input['down'] === true);
    return {};
  },
  runTurn: async (world, { context, input }) => runTurn(world, context, input),
  // The sender is who the broker let publish; under whose authority and in whose world is in the body.
  sendMessage: async (world, { context, input }) => {
    const { namespaceId, actor, authority, owner, purpose, traceId } = context;
    const { to, payload, sender } = input;
    const message = { id: world.nextId('message'), receiver: to, purpose, payload, traceId, createdAt: world.clock, authority, owner };
    const client = await world.system.client(namespaceId, actor);
    const sent = await client.messages.send({ ...message, ...(sender === undefined ? {} : { sender }) } as OutgoingMessage);
    if (!sent.ok) {
      if (sent.error.kind === 'unavailable') throw new Error(`the message was not answered: ${sent.error.reason}`);
      return { status: 'denied', code: sent.error.error.code };
    }
    return { ...sent.value, ...('error' in sent.value ? { code: sent.value.error.code } : {}) };
  },
};

/** Publishes a turn request as its requester does, and waits for the one answer. */
const runTurn = async (world: ServicesWorld, context: AccessContext, input: Bag): Promise<Bag> => {
  const { agent, script, limits, messageReceiver = agent } = input;
  const { scene, client } = world.system;
  const executionId = world.nextId('execution');
  const played = newScript(world, script as Bag[], async (step) => answer(world, step));
  scene.scripts.set(executionId, played);
  const { authority, owner, purpose, traceId } = context;
  const { actor } = context;
  // A request that says nothing of it is for the agent as itself. Only a host may say otherwise.
  const isAsOther = !sameAddress(actor, agent as AgentAddress);
  const submitted = await (
    await client(context.namespaceId, isAsOther ? HOST : authority)
  ).turns.submit({
    version: PROTOCOL_VERSION,
    executionId,
    agent: agent as AgentAddress,
    requestedAt: world.clock,
    owner,
    ...(isAsOther ? { context: { actor, authority, owner, purpose, traceId } } : {}),
    message: {
      version: PROTOCOL_VERSION,
      id: world.nextId('message'),
      sender: authority,
      receiver: messageReceiver as AgentAddress,
      purpose,
      payload: {},
      traceId,
      createdAt: world.clock,
    },
    ...(limits === undefined ? {} : { options: limits as ExecutionOptions }),
  });
  if (!submitted.ok) throw new Error(`the turn was not queued: ${JSON.stringify(submitted.error)}`);
  const answered = await submitted.value.result;
  if (!answered.ok) throw new Error(`the turn was not answered: ${JSON.stringify(answered.error)}`);
  const reason = world.audit.findLast(({ type }) => type === 'escalation.requested')?.reason;
  return turnAnswer(answered.value.result, played, reason);
};

const answer = async (world: ServicesWorld, step: Step): Promise<Bag> => {
  const operation = OPERATIONS[step.op];
  if (operation === undefined) throw new UnknownToRunner(`no operation is called ${step.op}`);
  const held = step.turn === undefined ? undefined : world.turns.get(step.turn);
  if (step.turn !== undefined && held === undefined) throw new UnknownToRunner(`no turn ${step.turn} was opened`);
  const context = world.contextOf(step);
  return operation(world, { input: step.input ?? {}, context, turn: held ?? new ServiceTurn(world.system, context) });
};

/** Carries out one step, or several at once, and keeps what came of each under its id, in the words of the case. */
export const perform = async (world: ServicesWorld, step: Step): Promise<ReadonlyMap<string, Observed>> => {
  world.audit = [];
  const now = step.as?.['now'];
  const clock = world.clock;
  // The services have one clock; a step that says what time it is has said it for them.
  if (typeof now === 'string') world.setClock(now);
  const steps = step.op === 'parallel' ? (step.input?.['steps'] as Step[]) : [];
  const answers = step.op === 'parallel' ? await Promise.all(steps.map((one) => answer(world, one))) : [await answer(world, step)];
  if (typeof now === 'string') world.setClock(clock);
  const [defect] = world.system.scene.defects;
  if (defect !== undefined) throw new Error(`a defect in ${defect}`);
  const usage = await world.uses();
  const deliveries = await world.delivered();
  const observed = (received: Bag): Observed =>
    observedOf(world.outside(received), {
      audit: world.outside(world.audit),
      counts: { grantLoads: world.grantLoads, handlerCalls: Object.fromEntries(world.handlerCalls), deliveries },
      usage,
    });
  if (step.op !== 'parallel') return new Map([[step.id, observed(answers[0] as Bag)]]);
  return new Map([
    [step.id, observed({ outcomes: outcomesOf(answers), answers })],
    ...steps.map(({ id }, index): [string, Observed] => [id, observed(answers[index] as Bag)]),
  ]);
};
