import type { ClientError } from '@sharedos/client';
import type { ApiErrorResponse } from '@sharedos/contracts';

export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

export const answer = (body: unknown, status = 200): Answer => ({ status, body });

/** Codes of the gateway itself, with the status and the words of each. None of them was decided by a rule about grants. */
const ERRORS = {
  invalid_json: [400, 'The body is not JSON.'],
  invalid_request: [400, 'The request does not match its contract.'],
  unauthorized: [401, 'A bearer token that names a known principal is needed.'],
  permission_denied: [403, 'This may not be asked for here.'],
  not_found: [404, 'There is nothing at this path.'],
  unknown_session: [404, 'There is no such session of this principal.'],
  method_not_allowed: [405, 'This path has no such method.'],
  body_too_large: [413, 'The body is larger than is taken.'],
  unsupported_media_type: [415, 'A body is application/json.'],
  rate_limited: [429, 'Too much at once: try again later.'],
  internal_error: [500, 'The request could not be handled.'],
  unavailable: [503, 'Nobody could find out: ask again.'],
} as const;
export type ApiErrorCode = keyof typeof ERRORS;

export const apiError = (code: ApiErrorCode, requestId: string, message: string = ERRORS[code][1]): Answer => {
  const body: ApiErrorResponse = { error: { code, message, requestId } };
  return { status: ERRORS[code][0], body };
};

const STATUS: Readonly<Record<string, number>> = {
  invalid_request: 400,
  not_permitted: 403,
  identity_mismatch: 403,
  forbidden: 403,
  not_a_root: 403,
  no_matching_grant: 403,
  turn_not_found: 404,
  request_too_large: 413,
  turn_queue_full: 429,
  rate_limited: 429,
};
/** The request stands against something that is so: another request under its id, a time that is over. */
const CONFLICT = 409;

/** What the system refused to do at all, or what nobody could find out. A decision about a call is never one of these: it is an answer. */
export const clientError = (error: ClientError, requestId: string): Answer => {
  if (error.kind === 'unavailable') return apiError('unavailable', requestId);
  const { code, message } = error.error;
  const body: ApiErrorResponse = { error: { code: code.slice(0, 128), message, requestId } };
  return { status: STATUS[code] ?? (error.error.retryable === true ? 503 : CONFLICT), body };
};
