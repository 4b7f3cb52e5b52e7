import type { Delivery } from '@sharedos/bus';
import {
  type DeliveryResult,
  type MessageAnswer,
  type MessageEnvelope,
  PROTOCOL_VERSION,
  type Reply,
  hashOf,
  refused,
  timestampOf,
} from '@sharedos/contracts';
import { provenanceOf } from '@sharedos/kernel';
import { outgoing } from './outgoing.ts';
import type { Ports } from './ports.ts';
import { sendOnce } from './send-once.ts';

/**
 * Sends back what a recipient's turn came to: an ordinary message of that agent, under the authority and the owner that its
 * registration names now, and by its own grant to send to whoever asked. Asked again, it is the same message.
 *
 * @see spec/messaging.md §6
 */
export const answerMessage =
  (ports: Ports) =>
  async ({ executionId, message, output, completedAt }: MessageAnswer, { namespaceId }: Delivery): Promise<Reply<DeliveryResult>> => {
    const { receiver: agent, sender, id, purpose, traceId } = message;
    if (agent.kind !== 'agent') return refused('invalid_request', 'only an agent answers with a turn');
    const facts = await ports.authority.namespace(namespaceId, agent.agentId);
    if (!facts.ok) return refused('authority_unavailable', 'the registration of the agent could not be read; ask again', true);
    const registered = facts.value.agent;
    if (registered?.status !== 'active') return refused('recipient_not_registered', 'the agent is not registered any more');
    const { authority, owner } = registered.terms;
    const context = {
      namespaceId,
      actor: agent,
      authority,
      owner,
      purpose,
      traceId,
      enabledToolNamespaces: [],
      now: timestampOf(ports.clock()),
    };
    const reply: MessageEnvelope = {
      version: PROTOCOL_VERSION,
      id: `reply-${hashOf({ namespaceId, agent, executionId }).slice(0, 48)}`,
      sender: agent,
      receiver: sender,
      purpose,
      payload: output,
      traceId,
      createdAt: completedAt,
      replyTo: id,
      provenance: provenanceOf(executionId, message),
    };
    return sendOnce(ports, outgoing(context, reply, ports.ids()));
  };
