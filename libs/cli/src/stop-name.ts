import type { StopTarget } from '@sharedos/contracts';
import { usageFailure } from './exit-code.ts';
import { parsePrincipal, principalName } from './principal-name.ts';

/** `agent:scout`, or `namespace` for all of it. */
export const parseStopTarget = (text: string): StopTarget => {
  if (text === 'namespace') return { kind: 'namespace' };
  const agent = parsePrincipal(text);
  if (agent.kind !== 'agent')
    throw usageFailure(`"${text}" cannot be stopped: name an agent, as in agent:scout, or "namespace" for all of it`);
  return { kind: 'agent', agent };
};

export const stopName = (target: StopTarget): string => (target.kind === 'namespace' ? 'namespace' : principalName(target.agent));
