import { type ReachResult, type RuntimeExecutionRequest, hashOf } from '@sharedos/contracts';

export interface PromptOptions {
  /** What the host wants the model to know before everything else. */
  readonly guidance?: string;
  /** The first user text of a turn; {@link firstText} when absent. */
  readonly firstText?: (request: RuntimeExecutionRequest) => string;
}

/** What a model is told before the turn begins. */
export interface Prompt {
  readonly instructions: string;
  readonly prompt: string;
  /** Names both, so that two turns that were told the same can be found. */
  readonly promptHash: string;
}

/** @see spec/runtimes.md §4, rule 1 */
export const promptOf = (request: RuntimeExecutionRequest, options: PromptOptions = {}): Prompt => {
  const guidance = options.guidance?.trim() ?? '';
  const reach = describeReach(request.context.reach);
  const instructions = guidance === '' ? reach : `${guidance}\n\n${reach}`;
  const prompt = (options.firstText ?? firstText)(request);
  return { instructions, prompt, promptHash: hashOf({ instructions, prompt }) };
};

/** The payload if it is a text, else its `text` if that is one, else its JSON. */
export const firstText = ({ message: { payload } }: RuntimeExecutionRequest): string => {
  if (typeof payload === 'string') return payload;
  const text =
    typeof payload === 'object' && payload !== null && !Array.isArray(payload) && 'text' in payload ? payload['text'] : undefined;
  return typeof text === 'string' ? text : JSON.stringify(payload);
};

const PLACES_TOLD_MAX = 200;

/** Where the turn may operate, in words. An unknown reach is told as unknown: an empty one would say that nothing is permitted. */
const describeReach = (reach: ReachResult): string => {
  if (reach.status === 'unavailable') return 'Where you may operate is not known at the moment. Each call is decided when you make it.';
  if (reach.reach.length === 0) return 'No resources are open to you. Each call is decided when you make it.';
  const places = reach.reach.slice(0, PLACES_TOLD_MAX).map(({ namespace, path, actions, scope }) => {
    const below = scope === 'descendants' ? ' and all below' : '';
    return `- ${actions.join(', ')} in ${namespace} at ${JSON.stringify(path)}${below}`;
  });
  const more = reach.reach.length - places.length;
  if (more > 0) places.push(`- and ${more} more places`);
  return ['You may operate here; each call is decided when you make it:', ...places].join('\n');
};
