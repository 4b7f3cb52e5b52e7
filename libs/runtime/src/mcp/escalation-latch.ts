import type { Json, ToolResult } from '@sharedos/contracts';
import { ESCALATE_TOOL } from '../escalate-tool.ts';
import { escalationReason } from '../escalation-reason.ts';
import type { RuntimeHost } from '../runtime.ts';

/** A call as the harness made it: its arguments are whatever came, or nothing. */
export interface SeenCall {
  readonly id: string;
  readonly tool: string;
  readonly arguments: Json | undefined;
}

/**
 * Stands in front of the broker where the vendor owns the loop. The first ask is answered here and nothing of the turn runs after
 * it: later work would run ahead of the human's answer. Closing the bridge instead would look like a fault of the transport, and
 * harnesses try those again.
 *
 * @see spec/escalation.md §5
 */
export interface EscalationLatch {
  /** The answer of the latch, or nothing where the call is the broker's. */
  intercept(call: SeenCall): ToolResult | undefined;
  /** Why a human was asked for; absent as long as nobody has. */
  readonly reason: string | undefined;
  readonly callsAfterEscalation: number;
}

const NOTE = 'A human will be asked: the request will be recorded when this turn ends. Make no further calls and stop here.';
const PENDING = 'A human was asked for. Nothing more runs in this turn.';

export const createEscalationLatch = (turn: {
  /** Names of the turn's catalogue: an affordance that is not in it is a guess like any other, and the broker's to refuse. */
  readonly offered: ReadonlySet<string>;
  readonly completedAt: string;
  readonly annotate: RuntimeHost['annotate'];
}): EscalationLatch => {
  let reason: string | undefined;
  let callsAfterEscalation = 0;
  return {
    intercept: ({ id, tool, arguments: given }) => {
      const answered = { callId: id, tool, completedAt: turn.completedAt };
      if (reason !== undefined) {
        callsAfterEscalation += 1;
        return { status: 'denied', ...answered, error: { code: 'escalation_pending', message: PENDING, retryable: false } };
      }
      if (tool !== ESCALATE_TOOL || !turn.offered.has(ESCALATE_TOOL)) return undefined;
      reason = escalationReason(given);
      // Stated now: whatever becomes of the turn, it is known that it asked.
      turn.annotate('escalationAsked', { tool: ESCALATE_TOOL, reason });
      return { status: 'succeeded', ...answered, output: { escalated: true, reason, note: NOTE } };
    },
    get reason() {
      return reason;
    },
    get callsAfterEscalation() {
      return callsAfterEscalation;
    },
  };
};
