// Tools that put planted texts wherever a tool of a host could: into what they answer, throw, and are asked for.
import type { ToolHandler } from '@sharedos/tools';
import { PLANTED } from '../planted.ts';

type Behaviour = Pick<ToolHandler, 'invoke'> & Partial<Pick<ToolHandler, 'parseArguments' | 'resolveRequirement'>>;

const leaking = (name: string, behaviour: Behaviour): ToolHandler => ({
  definition: {
    name: `vault.${name}`,
    description: 'Look into the vault.',
    namespace: 'vault',
    source: 'native',
    readWrite: 'read',
    inputSchema: { type: 'object', additionalProperties: false, properties: {} },
    requiredCapability: { resource: { namespace: 'vault', path: [] }, action: 'read' },
    annotations: { readOnly: true },
  },
  parseArguments: () => ({}),
  resolveRequirement: (context) => ({ resource: { namespace: 'vault', path: [name], owner: context.owner }, action: 'read' }),
  ...behaviour,
});

const answer: ToolHandler['invoke'] = async (context, call) => ({
  callId: call.id,
  tool: call.tool,
  completedAt: context.now,
  status: 'succeeded',
  output: { text: PLANTED.toolOutput },
});

export const tools: readonly ToolHandler[] = [
  leaking('answers', { invoke: answer }),
  leaking('throws', {
    invoke: async () => {
      throw Object.assign(new Error(PLANTED.thrownByHandler, { cause: new Error(PLANTED.causeOfThrown) }), {
        code: PLANTED.thrownByHandler,
      });
    },
  }),
  leaking('fails', {
    invoke: async (context, call) => ({
      callId: call.id,
      tool: call.tool,
      completedAt: context.now,
      status: 'failed',
      error: { code: 'vault_closed', message: PLANTED.toldByTool, retryable: false },
    }),
  }),
  leaking('mistakes', {
    invoke: async (context, call, signal) => ({
      ...(await answer(context, call, signal)),
      callId: PLANTED.brokenOutput,
      output: { text: PLANTED.brokenOutput },
    }),
  }),
  leaking('misreads', {
    invoke: answer,
    parseArguments: () => {
      throw new Error(PLANTED.thrownByParser);
    },
  }),
  leaking('misjudges', {
    invoke: answer,
    resolveRequirement: () => {
      throw new Error(PLANTED.thrownByRequirement);
    },
  }),
];
