import { type Bus, connectBus } from '@sharedos/bus';
import { BusConnectError } from '@sharedos/client';
import type { Context } from '../context-file.ts';
import { CommandFailure, EXIT, usageFailure } from '../exit-code.ts';

const CONNECT_MS = 5_000;

/**
 * Connects as the operator of a context.
 *
 * @throws CommandFailure when the context has no operator, or there is no connection.
 */
export const connectOperator = async (context: Context): Promise<Bus> => {
  const { operator } = context;
  if (operator === undefined)
    throw usageFailure(
      'the context has no credentials of the operator: write them into it as "operator", with user, password and inboxPrefix',
    );
  try {
    return await connectBus({
      servers: context.natsUrl.split(','),
      ...(context.caFile === undefined ? {} : { caFile: context.caFile }),
      user: operator.user,
      pass: operator.password,
      inboxPrefix: operator.inboxPrefix,
      name: 'sharedos-operator',
      connectTimeoutMs: CONNECT_MS,
    });
  } catch (error) {
    if (error instanceof BusConnectError) throw new CommandFailure(EXIT.unavailable, 'not_connected', error.message);
    throw error;
  }
};
