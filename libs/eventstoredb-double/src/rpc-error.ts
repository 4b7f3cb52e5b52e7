import { Metadata, type ServiceError, status } from '@grpc/grpc-js';

/** An error as the server sends it: a status, and in its trailers which of the known exceptions it is. */
export const rpcError = (code: status, details: string, trailers: Readonly<Record<string, string>> = {}): ServiceError => {
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(trailers)) metadata.set(name, value);
  return Object.assign(new Error(details), { code, details, metadata });
};

/** A header holds printable ASCII alone; what is else in a name is lost on the way, as on a real server. */
const asHeader = (text: string): string => text.replaceAll(/[^\x20-\x7e]/g, '?');

export const streamDeleted = (stream: string): ServiceError =>
  rpcError(status.FAILED_PRECONDITION, `Event stream '${stream}' is deleted.`, {
    exception: 'stream-deleted',
    'stream-name': asHeader(stream),
  });

export const accessDenied = (): ServiceError => rpcError(status.PERMISSION_DENIED, 'Access Denied', { exception: 'access-denied' });

export const unauthenticated = (): ServiceError => rpcError(status.UNAUTHENTICATED, 'Unauthenticated');

export const appendTooLarge = (bytesMax: number): ServiceError =>
  rpcError(status.INVALID_ARGUMENT, `Maximum Append Size of ${bytesMax} Exceeded.`, {
    exception: 'maximum-append-size-exceeded',
    'maximum-append-size': String(bytesMax),
  });

export const notLeader = (host: string, port: number): ServiceError =>
  rpcError(status.NOT_FOUND, 'Leader info available', {
    exception: 'not-leader',
    'leader-endpoint-host': host,
    'leader-endpoint-port': String(port),
  });

export const noLeaderInfo = (): ServiceError => rpcError(status.UNKNOWN, 'No leader info available in response');

export const wrongExpectedVersion = (stream: string, expected: string, actual: number | undefined): ServiceError =>
  rpcError(status.FAILED_PRECONDITION, `WrongExpectedVersion. Stream: ${stream}`, {
    exception: 'wrong-expected-version',
    'stream-name': asHeader(stream),
    'expected-version': expected,
    'actual-version': String(actual ?? -1),
  });

export const invalidPosition = (): ServiceError => rpcError(status.INVALID_ARGUMENT, 'Invalid position');

export const missingProperty = (name: string): ServiceError =>
  rpcError(status.INVALID_ARGUMENT, `Required Metadata Property '${name}' is missing`, {
    exception: 'missing-required-metadata-property',
    'required-metadata-properties': 'type,content-type',
  });

export const timedOut = (): ServiceError => rpcError(status.ABORTED, 'Operation timed out');

/** The server ends a subscription or a call of its own accord, as it does when it shuts down or loses its leadership. */
export const cut = (): ServiceError => rpcError(status.UNAVAILABLE, 'Server Is Not Ready');
