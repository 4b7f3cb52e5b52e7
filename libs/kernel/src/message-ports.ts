import { type AccessContext, type AuthorizationRequest, type DeliveryResult, type MessageEnvelope, addressPath } from '@sharedos/contracts';
import { MESSAGE_SEND_ACTION, MESSAGING_NAMESPACE } from './standard-capabilities.ts';

/** Takes an authorized message into custody or delivers it. It holds no grants and decides nothing about permission. */
export interface MessageTransport {
  deliver(context: AccessContext, envelope: MessageEnvelope, signal: AbortSignal): Promise<DeliveryResult>;
}

/** Finds the durable reply to one accepted request. It builds none: what it returns is checked before its payload is shown. */
export interface MessageRequestRouter {
  resolveReply(context: AccessContext, request: MessageEnvelope, delivery: DeliveryResult, signal: AbortSignal): Promise<MessageEnvelope>;
}

/** Says what sending an envelope needs: a pure function of context and envelope. */
export interface MessageCapabilityResolver {
  /** The resource namespace that its requirements are in; `sharedos.messaging` when absent. The tool for messages declares it. */
  readonly namespace?: string;
  resolve(context: AccessContext, envelope: MessageEnvelope): AuthorizationRequest;
}

/** Sending is granted recipient by recipient. */
export class RecipientScopedMessageCapabilityResolver implements MessageCapabilityResolver {
  readonly namespace: string;

  constructor(namespace: string = MESSAGING_NAMESPACE) {
    this.namespace = namespace;
  }

  resolve(context: AccessContext, envelope: MessageEnvelope): AuthorizationRequest {
    return {
      resource: { namespace: this.namespace, path: [...addressPath(envelope.receiver)], owner: context.owner },
      action: MESSAGE_SEND_ACTION,
    };
  }
}
