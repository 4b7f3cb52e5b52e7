import { type AccessContext, type AuthorizationRequest, DeliveryResult, MessageEnvelope, sameAddress } from '@sharedos/contracts';
import { messageSent } from '../audit.ts';
import { ContractError } from '../contract-errors.ts';
import { contractValue, frozenCopy } from '../contract-value.ts';
import { type KernelCore, type KernelOperationOptions, refusal, signalOr, stated } from './core.ts';
import { decideOperation } from './decide-operation.ts';
import { once } from './once.ts';

/**
 * Sends one message that its caller built. The envelope brings no authority: it has to agree with the trusted context, and the
 * recipient has to be granted.
 *
 * @throws ContractError for what is no envelope, AuditUnavailableError when the decision could not be recorded, and the signal's reason.
 * @see spec/messaging.md §3
 */
export const sendMessage = async (
  core: KernelCore,
  given: AccessContext,
  givenEnvelope: MessageEnvelope,
  { signal }: KernelOperationOptions = {},
): Promise<DeliveryResult> => {
  const context = core.enter(given, signal);
  const parsed = contractValue(MessageEnvelope, givenEnvelope);
  if (!parsed.ok) throw new ContractError('message envelope', parsed.error);
  const envelope = parsed.value;
  const refuse = (status: 'denied' | 'failed', code: string, grantId?: string): Promise<DeliveryResult> =>
    settled(core, context, envelope, { status, ...receipt(context, envelope), error: refusal(code) }, { grantId });

  if (!belongs(envelope, context)) return refuse('denied', 'message_context_mismatch');
  const { namespaceId, actor } = context;
  return once(core, {
    key: { namespaceId, actor, kind: 'message', scope: '', id: envelope.id },
    context,
    input: envelope,
    schema: DeliveryResult,
    refuse,
    run: () => send(core, context, envelope, refuse, signal),
  });
};

const send = async (
  core: KernelCore,
  context: AccessContext,
  envelope: MessageEnvelope,
  refuse: (status: 'denied' | 'failed', code: string, grantId?: string) => Promise<DeliveryResult>,
  signal: AbortSignal | undefined,
): Promise<DeliveryResult> => {
  let request: AuthorizationRequest;
  try {
    request = core.messageCapabilities.resolve(context, envelope);
  } catch (error) {
    const { traceId, namespaceId } = context;
    core.report(error, { kind: 'message', reasonCode: 'message_requirement_resolution_failed', traceId, namespaceId });
    return refuse('failed', 'message_requirement_resolution_failed');
  }
  const held = await core.hold(context, signal);
  if (held.resolution.status === 'unavailable') return refuse('denied', 'authority_unavailable');
  const { decision, grantId } = await decideOperation(core, held, context, request, { consume: true });
  if (!decision.allowed) return refuse('denied', decision.reasonCode, grantId);
  signal?.throwIfAborted();
  return deliver(core, context, envelope, { grantId, request, signal });
};

const belongs = ({ sender, purpose, traceId }: MessageEnvelope, context: AccessContext): boolean =>
  sameAddress(sender, context.actor) && purpose === context.purpose && traceId === context.traceId;

const receipt = ({ now }: AccessContext, { id }: MessageEnvelope) => ({ messageId: id, timestamp: now });

/** Delivers a message whose sending was authorized, and records how it went. It decides nothing and retries nothing. */
export const deliver = async (
  core: KernelCore,
  context: AccessContext,
  envelope: MessageEnvelope,
  sending: {
    readonly grantId?: string | undefined;
    /** The tool call that asked for it. */
    readonly operationId?: string | undefined;
    readonly tool?: string | undefined;
    readonly request?: AuthorizationRequest | undefined;
    readonly signal: AbortSignal | undefined;
  },
): Promise<DeliveryResult> => {
  const { signal, request, operationId, tool, grantId } = sending;
  const facts = { grantId, operationId };
  const failed = (code: string): DeliveryResult => ({ status: 'failed', ...receipt(context, envelope), error: refusal(code) });
  const transport = core.options.messageTransport;
  if (transport === undefined) return settled(core, context, envelope, failed('message_transport_not_configured'), facts);
  let answered: unknown;
  try {
    answered = await transport.deliver(frozenCopy(context), envelope, signalOr(signal));
  } catch (error) {
    if (signal?.aborted === true) {
      await settled(core, context, envelope, failed('operation_aborted'), facts);
      throw signal.reason;
    }
    const { traceId, namespaceId } = context;
    core.report(error, {
      kind: 'message',
      reasonCode: 'message_delivery_failed',
      traceId,
      namespaceId,
      ...(operationId === undefined ? {} : { operationId }),
      ...(tool === undefined ? {} : { tool }),
      ...(request === undefined ? {} : stated(request)),
    });
    return settled(core, context, envelope, failed('message_delivery_failed'), facts);
  }
  const result = contractValue(DeliveryResult, answered);
  const named = result.ok && result.value.messageId === envelope.id;
  return settled(core, context, envelope, named ? result.value : failed('invalid_message_receipt'), facts);
};

const settled = async (
  core: KernelCore,
  context: AccessContext,
  { id, receiver }: MessageEnvelope,
  result: DeliveryResult,
  facts: { readonly grantId?: string | undefined; readonly operationId?: string | undefined },
): Promise<DeliveryResult> => {
  const refused = 'error' in result;
  const outcome = result.status === 'denied' || result.status === 'failed' ? result.status : 'succeeded';
  const reason = refused ? result.error.code : undefined;
  await core.recordAfter(messageSent(core.mark(context), { messageId: id, receiver, outcome, reason, ...facts }));
  return frozenCopy(result);
};
