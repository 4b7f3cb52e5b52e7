import type { StreamName } from '@sharedos/contracts';
import type { LocalStack } from '@sharedos/testing';
import { connect } from 'nats';

/** Takes the room of a stream away, as if it had grown to its limit, and gives it back. With the rights of who made the stream. */
export interface StreamRoom {
  /** No record fits any more. */
  fill(stream: StreamName): Promise<void>;
  /** As it was when it was first filled. */
  empty(stream: StreamName): Promise<void>;
  close(): Promise<void>;
}

/** Less than any record takes. */
const REST_BYTES = 32;

export const openStreamRoom = async ({ natsUrl, credentials }: LocalStack): Promise<StreamRoom> => {
  const { user, password, inboxPrefix } = credentials.provisioner;
  const nats = await connect({ servers: natsUrl, user, pass: password, inboxPrefix });
  const streams = (await nats.jetstreamManager()).streams;
  const limits = new Map<StreamName, number>();
  return {
    fill: async (stream) => {
      // Again when something was stored in between.
      for (;;) {
        const { config, state } = await streams.info(stream);
        limits.set(stream, limits.get(stream) ?? config.max_bytes);
        await streams.update(stream, { ...config, max_bytes: state.bytes + REST_BYTES });
        const after = await streams.info(stream);
        if (after.state.bytes === state.bytes && after.state.messages === state.messages) return;
      }
    },
    empty: async (stream) => {
      const { config } = await streams.info(stream);
      await streams.update(stream, { ...config, max_bytes: limits.get(stream) ?? config.max_bytes });
    },
    close: () => nats.close(),
  };
};
