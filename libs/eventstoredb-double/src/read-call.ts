import type { ServerWritableStream } from '@grpc/grpc-js';
import type { ReadRequest } from './wire.ts';

export type ReadCall = ServerWritableStream<ReadRequest, object>;

/** Sends one message, waiting while the caller is slow. @returns Whether the caller is still there. */
export const send = async (call: ReadCall, message: object): Promise<boolean> => {
  if (call.cancelled) return false;
  if (!call.write(message)) {
    await new Promise<void>((resolve) => {
      const go = (): void => {
        call.off('drain', go);
        call.off('cancelled', go);
        resolve();
      };
      call.on('drain', go);
      call.on('cancelled', go);
    });
  }
  return !call.cancelled;
};
