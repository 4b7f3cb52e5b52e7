import { type ProtocolError, type Result, type Unavailable, err } from '@sharedos/contracts';

/** A rule said no, here or at a service. `error.code` is stable; repeating the same request changes nothing unless `retryable`. */
export interface Refused {
  readonly kind: 'refused';
  readonly error: ProtocolError;
}

/**
 * Why a call did not do what was asked. `unavailable` means that nobody could find out: what was sent may have been carried out, so
 * look what became of it, or send the very same request again. The same id is not enough for a turn or a message: keep the request
 * that was made, its times and all. For a command on grants the same `commandId` and grant id are.
 */
export type ClientError = Refused | Unavailable;

/** Codes that the client itself gives; all others are the services'. */
export const CLIENT_CODES = {
  /** The principal has as many turns queued as the system keeps for it. */
  queueFull: 'turn_queue_full',
  tooLarge: 'request_too_large',
  /** The broker lets this principal not do that. */
  notPermitted: 'not_permitted',
} as const;

export const refused = (code: string, message: string, retryable: boolean): Result<never, Refused> =>
  err({ kind: 'refused', error: { code, message, retryable } });

/** Whether the same question, asked later, may be answered otherwise. */
export const mayChange = (error: ClientError): boolean => error.kind === 'unavailable' || error.error.retryable === true;

/** One line for a person. */
export const describeClientError = (error: ClientError): string =>
  error.kind === 'refused' ? `${error.error.code}: ${error.error.message}` : `unavailable: ${error.reason}`;
