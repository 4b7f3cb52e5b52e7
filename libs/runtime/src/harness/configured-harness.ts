import { type JsonObj, type Result, bounded, describeIssues, err, ok, parseJsonText } from '@sharedos/contracts';
import { z } from 'zod';
import type { OpenRuntime } from '../runtime-registry.ts';
import { claudeCode } from './claude-code.ts';
import { codex } from './codex.ts';
import { deepseek } from './deepseek.ts';
import { type HarnessRuntimeOptions, harnessRuntime } from './harness-runtime.ts';
import { pi } from './pi.ts';
import type { HarnessVendor } from './vendor.ts';

const text = bounded(z.string(), 1);
const common = {
  /** The program, by its path. */
  command: text,
  args: z.array(z.string()).optional(),
  /** Its whole environment beside its scratch folder, the key for its model among it. */
  env: z.record(z.string(), z.string()).default({}),
  model: text.optional(),
  modelProvider: text.optional(),
};

/** One harness of a host, as its operator states it. */
const HarnessSettings = z.discriminatedUnion('vendor', [
  z.strictObject({ vendor: z.enum(['codex', 'claude-code', 'deepseek']), ...common }),
  z.strictObject({ vendor: z.literal('pi'), extension: text, ...common }),
]);
export type HarnessSettings = z.infer<typeof HarnessSettings>;

const Harnesses = z.record(z.string().regex(/^[a-z0-9][a-z0-9-]{0,63}$/), HarnessSettings);

/** Reads what an operator states of the harnesses of a host: an object of {@link HarnessSettings} by name, as JSON. */
export const readHarnesses = (stated: string): Result<Readonly<Record<string, HarnessSettings>>, string> => {
  const json = parseJsonText(stated);
  if (!json.ok) return json;
  const read = Harnesses.safeParse(json.value);
  return read.success ? ok(read.data) : err(describeIssues(read.error));
};

/** What the registration of an agent may say. Never a program: whoever registers agents must not start what they like here. */
const RegisteredConfig = z.strictObject({ model: text.optional(), modelProvider: text.optional() });

/** Opens a configured harness for an agent whose registration names it. */
export const openHarness =
  (settings: HarnessSettings, ports: Pick<HarnessRuntimeOptions, 'clock' | 'timers' | 'scratchRoot' | 'onTurnError'>): OpenRuntime =>
  (config: JsonObj) => {
    const { command, args = [], env } = settings;
    const registered = RegisteredConfig.parse(config);
    const model = registered.model ?? settings.model;
    const modelProvider = registered.modelProvider ?? settings.modelProvider;
    return harnessRuntime({
      ...ports,
      vendor: vendorOf(settings),
      command,
      args,
      env,
      ...(model === undefined ? {} : { model }),
      ...(modelProvider === undefined ? {} : { modelProvider }),
    });
  };

const VENDORS = { codex, 'claude-code': claudeCode, deepseek } as const;

const vendorOf = (settings: HarnessSettings): HarnessVendor =>
  settings.vendor === 'pi' ? pi(settings.extension) : VENDORS[settings.vendor];
