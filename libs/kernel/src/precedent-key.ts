import { type Address, type Capability, type CapabilityRequest, byCodeUnit, canonicalJson, hashOf } from '@sharedos/contracts';

/**
 * What two escalations have in common when they ask the same question. The capabilities are the effective ones: what the owner
 * answered about, after the host's ceilings. When it was asked, under which id and with which constraints do not count.
 */
export interface PrecedentKey {
  readonly namespaceId: string;
  readonly owner: Address;
  readonly requester: Address;
  readonly purpose: string;
  readonly capabilities: readonly Capability[];
}

export const precedentKeyOf = ({ namespaceId, owner, requester, purpose, capabilities }: CapabilityRequest): PrecedentKey => ({
  namespaceId,
  owner,
  requester,
  purpose,
  capabilities,
});

/**
 * SHA-256 of a key in one spelling: an unowned resource is the key's owner's, and neither order nor repetition of actions or of
 * capabilities makes another question.
 *
 * @see spec/escalation.md §7, "Key"
 */
export const precedentDigest = ({ namespaceId, owner, requester, purpose, capabilities }: PrecedentKey): string => {
  const spelled = new Map<string, Capability>();
  for (const { resource, actions, scope } of capabilities) {
    const { namespace, path } = resource;
    const one = { resource: { namespace, path, owner: resource.owner ?? owner }, actions: [...new Set(actions)].sort(byCodeUnit), scope };
    spelled.set(canonicalJson(one), one);
  }
  const inOrder = [...spelled].sort(([a], [b]) => byCodeUnit(a, b)).map(([, one]) => one);
  return hashOf({ version: '1', namespaceId, owner, requester, purpose, capabilities: inOrder });
};
