import {
  type AccessContext,
  CapabilityRequest,
  CapabilityRequestPayload,
  type CapabilityRequirement,
  type Result,
  err,
  hashOf,
  jsonViolation,
  ok,
} from '@sharedos/contracts';

/**
 * Describes wanted authority as the kernel would: who asks, of whom and when come from the trusted context, whatever the ask
 * says of them. The same ask has the same id across turns; when it was made and its metadata do not count.
 *
 * @param ask A payload, or a whole request whose kernel-stated fields are thrown away.
 * @see spec/authorization.md §11
 */
export const capabilityRequestOf = (context: AccessContext, ask: unknown): Result<CapabilityRequest, 'invalid_ask'> => {
  const payload = readPayload(ask);
  if (payload === undefined) return err('invalid_ask');
  const { capabilities, purpose, constraints, metadata } = payload;
  const identity = {
    namespaceId: context.namespaceId,
    requester: context.actor,
    owner: context.owner,
    capabilities,
    purpose,
    ...(constraints === undefined ? {} : { constraints }),
  };
  return ok({
    id: `capreq-${hashOf(identity)}`,
    ...identity,
    requestedAt: context.now,
    ...(metadata === undefined ? {} : { metadata }),
  });
};

const readPayload = (ask: unknown): CapabilityRequestPayload | undefined => {
  if (jsonViolation(ask) !== undefined) return undefined;
  const payload = CapabilityRequestPayload.safeParse(ask);
  if (payload.success) return payload.data;
  const whole = CapabilityRequest.safeParse(ask);
  return whole.success ? whole.data : undefined;
};

/**
 * What would have satisfied a refused request: exactly it, and nothing more. It consults nothing, so an absent path and a
 * forbidden one look the same.
 */
export const requiredAuthorityOf = (context: AccessContext, { resource, action }: CapabilityRequirement): CapabilityRequest | undefined => {
  const { namespace, path, owner } = resource;
  const wanted = { resource: { namespace, path: [...path], ...(owner === undefined ? {} : { owner }) }, actions: [action], scope: 'exact' };
  const minted = capabilityRequestOf(context, { capabilities: [wanted], purpose: context.purpose });
  return minted.ok ? minted.value : undefined;
};

/** {@link capabilityRequestOf} for a host: the request, or nothing when what was asked is no valid ask. */
export const mintCapabilityRequest = async (
  context: AccessContext,
  payload: CapabilityRequestPayload,
): Promise<CapabilityRequest | undefined> => {
  const minted = capabilityRequestOf(context, payload);
  return minted.ok ? minted.value : undefined;
};

/** {@link requiredAuthorityOf} for a host. */
export const describeRequiredAuthority = async (
  context: AccessContext,
  request: CapabilityRequirement,
): Promise<CapabilityRequest | undefined> => requiredAuthorityOf(context, request);
