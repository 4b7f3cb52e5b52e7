import { RESULT_BYTES_MAX } from '@sharedos/contracts';

/** How far a server of a stranger is listened to. Past any of these its connection is given up, and with it what was asked of it. */
export interface McpLimits {
  /** To start, or be reached, and to introduce itself. */
  readonly connectMs: number;
  /** To tell all of its tools. */
  readonly listMs: number;
  /** To answer one call; a turn that ends sooner ends the call. */
  readonly callMs: number;
  /** One message. */
  readonly messageBytesMax: number;
  /** All that comes between two of our own messages. */
  readonly unaskedBytesMax: number;
  readonly unaskedMessagesMax: number;
  /** Calls under way over one connection. */
  readonly callsMax: number;
  /** A connection that nobody used for so long is closed. */
  readonly idleMs: number;
  /** What a server says of its tools is asked for again after this, also where it told of no change. */
  readonly verifiedMs: number;
  /** How long after a failed connection nobody tries again. */
  readonly retryMs: number;
  /** Connections of one executor, and of one owner on it: nobody's servers take the place of everybody's. */
  readonly connectionsMax: number;
  readonly connectionsOfOwnerMax: number;
}

export const MCP_LIMITS: McpLimits = {
  connectMs: 10_000,
  listMs: 15_000,
  callMs: 60_000,
  messageBytesMax: RESULT_BYTES_MAX + 64 * 1024,
  unaskedBytesMax: 2 * RESULT_BYTES_MAX,
  unaskedMessagesMax: 10_000,
  callsMax: 16,
  idleMs: 60_000,
  verifiedMs: 60_000,
  retryMs: 2_000,
  connectionsMax: 64,
  connectionsOfOwnerMax: 8,
};

/** A server said more than is listened to. */
export class McpFlood extends Error {
  override readonly name = 'McpFlood';
}
