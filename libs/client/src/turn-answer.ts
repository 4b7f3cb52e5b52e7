import type { BusMessage } from '@sharedos/bus';
import {
  type ExecutionEvent,
  type ExecutionResult,
  PAYLOAD_BYTES_MAX,
  type Revision,
  SCHEMA_HEADER,
  TurnEvent,
  TurnRefused,
  TurnResult,
  type WireMessage,
  decodeBody,
} from '@sharedos/contracts';

/** The terminal answer of a turn, and the revision that its authority was held at. */
export interface TurnAnswer {
  readonly result: ExecutionResult;
  readonly revision?: Revision | undefined;
}

const bodyOf = <T>(message: BusMessage, wire: WireMessage<T>): T | undefined => {
  if (message.header(SCHEMA_HEADER) !== wire.name) return undefined;
  const body = decodeBody(wire, message.data, PAYLOAD_BYTES_MAX);
  return body.ok ? body.value : undefined;
};

/** The answer in a message, when it is one and is about this execution; anything else is dropped by whoever asks. */
export const answerIn = (message: BusMessage, executionId: string): TurnAnswer | undefined => {
  const body = bodyOf(message, TurnResult);
  return body?.result.executionId === executionId ? body : undefined;
};

export const eventIn = (message: BusMessage, executionId: string): ExecutionEvent | undefined => {
  const event = bodyOf(message, TurnEvent);
  return event?.executionId === executionId ? event : undefined;
};

export const refusalIn = (message: BusMessage): TurnRefused | undefined => bodyOf(message, TurnRefused);
