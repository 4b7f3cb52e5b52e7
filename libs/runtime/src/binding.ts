import { type ExecutionRequest, sameAddress } from '@sharedos/contracts';

/**
 * The first way in which a request does not belong to the agent it names, or `undefined`. The sender of the message is compared
 * with nothing: a message brings no authority. @see spec/turns.md §4.3
 */
export const bindingMismatch = (request: ExecutionRequest): string | undefined => {
  const { context, message, agent } = request;
  if (!sameAddress(context.actor, agent)) return 'actor_mismatch';
  if (!sameAddress(message.receiver, agent)) return 'receiver_mismatch';
  if (message.traceId !== context.traceId || message.purpose !== context.purpose) return 'message_context_mismatch';
  return undefined;
};
