import {
  Id,
  Json,
  JsonObj,
  type ProtocolError,
  type RuntimeExecutionRequest,
  type ToolResult,
  describeIssues,
  bounded,
} from '@sharedos/contracts';
import { z } from 'zod';
import { jsonBytes } from './contract-value.ts';
import type { Driver, DriverDecision, DriverInput, DriverSession } from './driver.ts';
import type { Runtime } from './runtime.ts';
import { STANDARD_MANIFEST, type StandardLoopOptions, standardLoop } from './standard-loop.ts';

/**
 * The `state` of a request that the scripted driver carries out: calls in order, then an end.
 *
 * `output` replaces the collected answers as the output of the turn. With `stopOnRefusal` the first denied call is the last.
 * A script of n calls needs `maxSteps` of at least n + 1: completing is a step too.
 */
export const Script = z.strictObject({
  script: bounded(z.array(z.strictObject({ tool: Id, arguments: JsonObj, step: z.int().min(0).optional() })), 0, 1_000),
  output: Json.optional(),
  stopOnRefusal: z.boolean().optional(),
});
export type Script = z.infer<typeof Script>;

/** All collected outputs together; what does not fit is left out and marked `omitted`. */
export const SCRIPT_OUTPUT_BYTES_MAX = 2 * 1024 * 1024;

interface ScriptedAnswer {
  readonly tool: string;
  readonly status: ToolResult['status'];
  readonly code?: string;
  readonly output?: Json;
  readonly omitted?: true;
}

/**
 * Lets a caller drive a turn by data alone, for tests and automation. It is chosen by configuration; a message can only fill
 * in its script, and every call of it is decided like any other.
 */
export const scriptedDriver: Driver = {
  open: async (request) => openScript(request),
};

/** The standard loop over the scripted driver. */
export const scriptedRuntime = (options: Omit<StandardLoopOptions, 'driver' | 'manifest'> = {}): Runtime =>
  standardLoop({ ...options, driver: scriptedDriver, manifest: { ...STANDARD_MANIFEST, metadata: { driver: 'scripted' } } });

const openScript = (request: RuntimeExecutionRequest): DriverSession => {
  const parsed = Script.safeParse(request.state);
  if (!parsed.success) {
    const error: ProtocolError = { code: 'invalid_script', message: `The state is not a script: ${describeIssues(parsed.error)}` };
    return { next: async () => ({ type: 'fail', error }) };
  }
  const { script, output, stopOnRefusal } = parsed.data;
  const answers: ScriptedAnswer[] = [];
  let collectedBytes = 0;

  const collect = (result: ToolResult): void => {
    if (result.status !== 'succeeded') {
      answers.push({ tool: result.tool, status: result.status, code: result.error.code });
      return;
    }
    const bytes = output === undefined ? jsonBytes(result.output) : 0;
    const fits = collectedBytes + bytes <= SCRIPT_OUTPUT_BYTES_MAX;
    if (fits) collectedBytes += bytes;
    answers.push({ tool: result.tool, status: result.status, ...(fits ? { output: result.output } : { omitted: true }) });
  };

  const complete = (): DriverDecision => ({ type: 'complete', output: output ?? { calls: answers as unknown as Json } });

  const next = async (input: DriverInput): Promise<DriverDecision> => {
    if (input.type === 'tool_result') {
      collect(input.result);
      if (stopOnRefusal === true && input.result.status === 'denied') return complete();
    }
    const call = script[answers.length];
    if (call === undefined) return complete();
    return {
      type: 'tool_call',
      call: {
        id: `call-${answers.length + 1}`,
        tool: call.tool,
        arguments: call.arguments,
        traceId: request.context.traceId,
        requestedAt: request.context.now,
      },
      ...(call.step === undefined ? {} : { step: call.step }),
    };
  };
  return { next };
};
