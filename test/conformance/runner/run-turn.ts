import { type AccessContext, type AgentAddress, type ExecutionOptions, PROTOCOL_VERSION } from '@sharedos/contracts';
import { embeddedTurnKernel, runTurn } from '@sharedos/runtime';
import { overMcp } from '@sharedos/runtime/testing';
import { type Bag, type Step, UnknownToRunner } from './case.ts';
import { newScript, turnAnswer } from './script.ts';
import type { Stage } from './stage.ts';

/** Runs a whole turn of a scripted runtime through the envelope, over the embedded kernel. */
export const runScriptedTurn = async (
  stage: Stage,
  context: AccessContext,
  input: Bag,
  perform: (step: Step) => Promise<unknown>,
): Promise<Bag> => {
  const { agent, script, limits, messageReceiver = agent, channel } = input;
  if (channel !== undefined && channel !== 'mcp') throw new UnknownToRunner(`a turn over ${String(channel)}`);
  const played = newScript(stage, script as Bag[], perform);
  const run = channel === 'mcp' ? overMcp(played.run, () => stage.now) : played.run;

  const result = await runTurn(
    {
      version: PROTOCOL_VERSION,
      executionId: stage.nextId('execution'),
      agent: agent as AgentAddress,
      context,
      message: {
        version: PROTOCOL_VERSION,
        id: stage.nextId('message'),
        sender: context.owner,
        receiver: messageReceiver as AgentAddress,
        purpose: context.purpose,
        payload: {},
        traceId: context.traceId,
        createdAt: stage.clock,
      },
      tools: [...stage.definitions()],
      ...(limits === undefined ? {} : { options: limits as ExecutionOptions }),
    },
    {
      runtime: { manifest: { id: 'conformance.scripted', version: '1', protocolVersion: PROTOCOL_VERSION }, run },
      clock: () => stage.now,
      ids: () => stage.nextId('event'),
      defaults: {},
      kernel: embeddedTurnKernel(stage.newKernel()),
    },
  );
  const asked = stage.audit.findLast(({ type }) => type === 'escalation.requested')?.reason;
  return turnAnswer(result, played, asked);
};
