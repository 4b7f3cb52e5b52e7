import { type ModelRuntimeOptions, readHarnesses } from '@sharedos/runtime';
import { z } from 'zod';

/** Which runtimes this executor has. Only the operator says where a model is and with which key it is asked. */
export const runtimeSettings = {
  SHAREDOS_RUNTIME: z
    .string()
    .default('scripted')
    .meta({ description: 'Runtime of an agent whose registration names none: scripted, remote, model, or the name of a harness' }),
  SHAREDOS_MODEL_WIRE: z
    .enum(['chat-completions', 'responses', 'messages'])
    .optional()
    .meta({ description: 'How the provider of models is spoken to: chat-completions, responses or messages; no models when absent' }),
  SHAREDOS_MODEL_BASE_URL: z.url().optional().meta({ description: 'Where it is, without the last part of the path' }),
  SHAREDOS_MODEL_NAME: z.string().min(1).optional().meta({ description: 'The model, where the registration of an agent names none' }),
  SHAREDOS_MODEL_API_KEY: z.string().min(1).optional().meta({ description: 'Its key; this, or the file of a token' }),
  SHAREDOS_MODEL_TOKEN_FILE: z
    .string()
    .min(1)
    .optional()
    .meta({ description: 'File with a bearer token that somebody else renews; it is read again for each request' }),
  SHAREDOS_MODEL_PROVIDER: z
    .string()
    .min(1)
    .optional()
    .meta({ description: 'Who serves the model, for results and spans; by the wire when absent' }),
  SHAREDOS_HARNESSES: z
    .string()
    .default('{}')
    .transform((stated, context) => {
      const read = readHarnesses(stated);
      if (read.ok) return read.value;
      context.addIssue({ code: 'custom', message: read.error });
      return z.NEVER;
    })
    .meta({ description: 'Coding CLIs that run turns, as JSON: by name the vendor, command, args, env, model; see docs/harnesses.md' }),
};

export type RuntimeSettings = z.infer<z.ZodObject<typeof runtimeSettings>>;

export type ModelProvider = Pick<ModelRuntimeOptions, 'wire' | 'baseUrl' | 'model' | 'provider'> &
  ({ readonly apiKey: string } | { readonly tokenPath: string });

/**
 * The provider of models, where there is one.
 *
 * @throws Error when only a part of what it needs is set, or both ways to pay: the service must not start with less than was meant.
 */
export const modelProvider = (settings: RuntimeSettings): ModelProvider | undefined => {
  const {
    SHAREDOS_MODEL_WIRE: wire,
    SHAREDOS_MODEL_BASE_URL: baseUrl,
    SHAREDOS_MODEL_NAME: model,
    SHAREDOS_MODEL_API_KEY: apiKey,
    SHAREDOS_MODEL_TOKEN_FILE: tokenPath,
    SHAREDOS_MODEL_PROVIDER: provider,
  } = settings;
  if ([wire, baseUrl, model, apiKey, tokenPath, provider].every((value) => value === undefined)) return undefined;
  if (wire === undefined || baseUrl === undefined || model === undefined)
    throw new Error('a model needs SHAREDOS_MODEL_WIRE, SHAREDOS_MODEL_BASE_URL and SHAREDOS_MODEL_NAME');
  const stated = { wire, baseUrl, model, ...(provider === undefined ? {} : { provider }) };
  if (apiKey !== undefined && tokenPath === undefined) return { ...stated, apiKey };
  if (tokenPath !== undefined && apiKey === undefined) return { ...stated, tokenPath };
  throw new Error('a model needs SHAREDOS_MODEL_API_KEY or SHAREDOS_MODEL_TOKEN_FILE, and one of them');
};
