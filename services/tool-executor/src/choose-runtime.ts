import type { Bus } from '@sharedos/bus';
import {
  type Instant,
  type RuntimeChoice,
  RuntimeStep,
  RuntimeStepReply,
  STEP_ANSWER_BYTES_MAX,
  principalSubject,
} from '@sharedos/contracts';
import {
  type AskAgent,
  type Runtime,
  RuntimeRegistry,
  modelRuntime,
  openHarness,
  remoteRuntime,
  scriptedRuntime,
  tokenFile,
} from '@sharedos/runtime';
import { z } from 'zod';
import { type RuntimeSettings, modelProvider } from './runtime-settings.ts';

/** What the registration of an agent may say of its runtime. */
const ScriptedConfig = z.strictObject({});
const RemoteConfig = z.strictObject({ stepTimeoutMs: z.int().optional() });
// Neither an address nor a key: whoever registers an agent must not be able to have this host's key sent somewhere else.
const ModelConfig = z.strictObject({
  model: z.string().optional(),
  guidance: z.string().optional(),
  maxOutputTokens: z.int().min(1).optional(),
  temperature: z.number().min(0).max(2).optional(),
  stream: z.boolean().optional(),
  maxMalformedCalls: z.int().min(0).optional(),
});

export interface RuntimePorts {
  readonly bus: Pick<Bus, 'request'>;
  readonly clock: () => Instant;
  /** Told of what a driver threw; on the host alone. */
  readonly onTurnError: (error: unknown) => void;
}

/** The runtimes that this executor has, by name: `scripted`, `remote`, `model` where a provider is configured, and its harnesses. */
export const executorRuntimes = (settings: RuntimeSettings, { bus, clock, onTurnError }: RuntimePorts): RuntimeRegistry => {
  const runtimes = new RuntimeRegistry();
  runtimes.register('scripted', (config) => {
    ScriptedConfig.parse(config);
    return scriptedRuntime({ onTurnError });
  });
  runtimes.register('remote', (config) => remoteRuntime({ ...stated(RemoteConfig.parse(config)), ask: askOver(bus), clock, onTurnError }));
  const provider = modelProvider(settings);
  if (provider !== undefined) {
    const auth = 'apiKey' in provider ? { apiKey: provider.apiKey } : { credential: tokenFile(provider.tokenPath) };
    const { wire, baseUrl, model } = provider;
    const named = provider.provider === undefined ? {} : { provider: provider.provider };
    runtimes.register('model', (config) =>
      modelRuntime({ wire, baseUrl, model, ...named, ...stated(ModelConfig.parse(config)), auth, onTurnError }),
    );
  }
  for (const [name, harness] of Object.entries(settings.SHAREDOS_HARNESSES))
    runtimes.register(name, openHarness(harness, { clock, onTurnError }));
  return runtimes;
};

/**
 * The runtime of one agent: the one that its registration names, else the executor's own. Never anything that a message says.
 *
 * @throws ContractError when this executor has none of that name. A mistake of the host: the turn fails, and no other runtime is tried.
 */
export const runtimeOf = (runtimes: RuntimeRegistry, otherwise: Runtime, choice: RuntimeChoice | undefined): Runtime =>
  choice === undefined ? otherwise : runtimes.resolve(choice.runtime, choice.config);

const askOver =
  (bus: Pick<Bus, 'request'>): AskAgent =>
  ({ namespaceId, principal }, step, timeoutMs) =>
    bus.request(principalSubject('runtime.step', namespaceId, principal), RuntimeStep, step, RuntimeStepReply, {
      timeoutMs,
      outsideBytesMax: STEP_ANSWER_BYTES_MAX,
    });

/** Without the members that were left away: absent is not the same as `undefined` where a default stands. */
const stated = <T extends object>(config: T): { [K in keyof T]?: Exclude<T[K], undefined> } =>
  Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined)) as { [K in keyof T]?: Exclude<T[K], undefined> };
