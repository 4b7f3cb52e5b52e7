import { PROTOCOL_VERSION } from '@sharedos/contracts';
import { ContractError } from '../errors.ts';
import type { Runtime } from '../runtime.ts';
import { type StandardLoopOptions, standardLoop } from '../standard-loop.ts';
import { systemTimers } from '../timers.ts';
import { chatCompletions } from './chat-completions.ts';
import { messages } from './messages.ts';
import { type ModelAuth, resolveAuth } from './model-auth.ts';
import { modelDriver } from './model-driver.ts';
import type { ModelWire, WireName, WireOptions } from './model-wire.ts';
import type { PromptOptions } from './prompt.ts';
import { responses } from './responses.ts';

const MALFORMED_CALLS_MAX = 8;

const WIRES: Readonly<Record<WireName, { readonly provider: string; readonly open: (options: WireOptions) => ModelWire }>> = {
  'chat-completions': { provider: 'openai', open: chatCompletions },
  responses: { provider: 'openai', open: responses },
  messages: { provider: 'anthropic', open: messages },
};

export interface ModelRuntimeOptions extends WireOptions, PromptOptions, Omit<StandardLoopOptions, 'driver' | 'manifest'> {
  readonly wire: WireName;
  readonly auth: ModelAuth;
  /** Sent with each request; the credential's own win. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Who serves the model, for results and spans; the wire's own provider when absent. */
  readonly provider?: string;
  /** Calls with unreadable arguments that one turn may make; 8 when absent. */
  readonly maxMalformedCalls?: number;
}

/**
 * The standard loop over a model. Its manifest names the wire and the model asked for, so that no two are taken for one.
 *
 * @throws ContractError without exactly one of key and credential, or on a limit that is no count.
 */
export const modelRuntime = (options: ModelRuntimeOptions): Runtime => {
  const { wire: name, model, auth, headers, maxMalformedCalls = MALFORMED_CALLS_MAX, timers = systemTimers } = options;
  if (!Number.isSafeInteger(maxMalformedCalls) || maxMalformedCalls < 0)
    throw new ContractError('model runtime', 'maxMalformedCalls must be a whole number');
  const wire = WIRES[name].open(options);
  const provider = options.provider ?? WIRES[name].provider;
  return standardLoop({
    ...options,
    manifest: {
      id: `sharedos.model.${name}`,
      version: '1.0.0',
      protocolVersion: PROTOCOL_VERSION,
      metadata: { driver: 'model', model, provider },
    },
    driver: modelDriver({ ...options, wire, auth: resolveAuth(auth, wire, headers), provider, maxMalformedCalls, timers }),
  });
};
