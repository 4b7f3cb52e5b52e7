import {
  type Address,
  type CapabilityGrant,
  type GrantEvent,
  type GrantTerms,
  type Instant,
  type Result,
  err,
  instantOf,
  ok,
  sameAddress,
  timestampOf,
} from '@sharedos/contracts';
import { type Decider, accept, invariant, refuse, unreachable } from './decider.ts';
import { type DelegationRefusal, type DeriveOptions, deriveGrant } from './delegation.ts';
import { ESCALATION_GRANT_PREFIX } from './escalation-grant.ts';

/** `grant` is composed by the handler, of the terms asked and the caller known from the subject. */
export type GrantCommand =
  | {
      readonly type: 'IssueGrant';
      readonly grant: CapabilityGrant;
      /** The digest of the one call that it allows; any call within the grant where absent. */
      readonly boundTo?: string | undefined;
    }
  | {
      readonly type: 'RevokeGrant';
      readonly grantId: string;
      readonly requestedBy: Address;
      readonly at: Instant;
      readonly reason?: string | undefined;
      /** Whether the caller may stop the holder, as the management plane decided; then it need not be the issuer. */
      readonly asOperator?: boolean | undefined;
    };

/** A revoked grant keeps what it granted, with `revokedAt` written on it. */
export type GrantState =
  | { readonly status: 'absent' }
  | { readonly status: 'active' | 'revoked'; readonly grant: CapabilityGrant; readonly boundTo?: string };

export type GrantRefusal = { readonly code: 'grant_exists' | 'grant_not_found' | 'not_the_issuer' };

/** The life of one grant id: issued once, revoked at most once, never revived. */
export const grant: Decider<GrantState, GrantCommand, GrantEvent, GrantRefusal> = {
  initial: { status: 'absent' },
  decide: (command, state) => {
    switch (command.type) {
      case 'IssueGrant':
        return state.status === 'absent' ? accept(issueOf(command)) : refuse({ code: 'grant_exists' });
      case 'RevokeGrant': {
        if (state.status === 'absent') return refuse({ code: 'grant_not_found' });
        if (command.asOperator !== true && !sameAddress(command.requestedBy, state.grant.issuer)) return refuse({ code: 'not_the_issuer' });
        // The bus delivers at least once, so a second revocation is ordinary and changes nothing.
        if (state.status === 'revoked') return accept([]);
        const { grantId, at, reason } = command;
        return accept([{ type: 'GrantRevoked', grantId, revokedAt: timestampOf(at), ...(reason === undefined ? {} : { reason }) }]);
      }
      default:
        return unreachable(command);
    }
  },
  evolve: (state, event) => {
    switch (event.type) {
      case 'GrantIssued':
        return { status: 'active', grant: event.grant };
      case 'GrantBound':
        invariant(state.status === 'active', 'a grant is bound to its call in the append that issues it');
        return { ...state, boundTo: event.callDigest };
      case 'GrantRevoked':
        invariant(state.status !== 'absent', 'a grant is issued before it is revoked');
        return { ...state, status: 'revoked', grant: { ...state.grant, revokedAt: event.revokedAt } };
      default:
        return unreachable(event);
    }
  },
};

const issueOf = ({ grant: issued, boundTo }: Extract<GrantCommand, { type: 'IssueGrant' }>): readonly GrantEvent[] => {
  if (boundTo === undefined) return [{ type: 'GrantIssued', grant: issued }];
  invariant(issued.constraints.maxUses === 1, 'a grant that is bound to one call allows one use');
  // One append: nobody ever sees the grant without what binds it.
  return [
    { type: 'GrantIssued', grant: issued },
    { type: 'GrantBound', grantId: issued.id, callDigest: boundTo },
  ];
};

export interface IssueFrame {
  /** The caller, as the broker let it through. */
  readonly issuer: Address;
  readonly namespaceId: string;
  readonly at: Instant;
}

/**
 * Writes a root grant out of the terms asked. It is over the issuer's own resources and says so in every capability: one left
 * unowned would follow whichever owner a later context names.
 *
 * @returns `identity_mismatch` when the terms name another issuer, or the resource of another owner; `grant_id_reserved` for an id as
 *   only answers of questions have.
 * @see docs/adr/0002-identity-is-the-subject.md
 */
export const composeRootGrant = (
  terms: GrantTerms,
  { issuer, namespaceId, at }: IssueFrame,
): Result<CapabilityGrant, { readonly code: 'identity_mismatch' | 'grant_id_reserved' }> => {
  if (isReserved(terms.id)) return err({ code: 'grant_id_reserved' });
  const named = [terms.issuer, ...terms.capabilities.map(({ resource }) => resource.owner)];
  if (named.some((address) => address !== undefined && !sameAddress(address, issuer))) return err({ code: 'identity_mismatch' });
  return ok({
    id: terms.id,
    namespaceId,
    subject: terms.subject,
    issuer,
    capabilities: terms.capabilities.map((capability) => ({ ...capability, resource: { ...capability.resource, owner: issuer } })),
    constraints: terms.constraints ?? {},
    issuedAt: timestampOf(at),
    ...(terms.metadata === undefined ? {} : { metadata: terms.metadata }),
  });
};

export type ComposeDerivedCode = 'identity_mismatch' | 'grant_id_reserved' | 'not_the_holder' | 'parent_inactive' | DelegationRefusal;

/**
 * Writes a derived grant: what its holder passes on of `parent`. Revocation of the parent counts by being in the log at all,
 * whatever instant it is stamped with; descendants issued a moment later would be dead on arrival.
 *
 * A capability that names no owner is over the one owner of the parent, when it has one alone: as for a root grant, the owner is
 * written here. A named owner stays as it is named, and the rules of deriving judge it.
 */
export const composeDerivedGrant = (
  parent: CapabilityGrant,
  terms: GrantTerms,
  { requestedBy, at, ...options }: { readonly requestedBy: Address; readonly at: Instant } & DeriveOptions,
): Result<CapabilityGrant, { readonly code: ComposeDerivedCode }> => {
  if (isReserved(terms.id)) return err({ code: 'grant_id_reserved' });
  if (terms.issuer !== undefined && !sameAddress(terms.issuer, requestedBy)) return err({ code: 'identity_mismatch' });
  if (!sameAddress(parent.subject, requestedBy)) return err({ code: 'not_the_holder' });
  if (parent.revokedAt !== undefined) return err({ code: 'parent_inactive' });
  const { id, subject, constraints, metadata } = terms;
  const owner = onlyOwner(parent);
  const capabilities = terms.capabilities.map((asked) =>
    owner === undefined || asked.resource.owner !== undefined ? asked : { ...asked, resource: { ...asked.resource, owner } },
  );
  // The parent may have been dated by another replica, whose clock is ahead of ours by their skew. A child is never older.
  const issuedAt = timestampOf(Math.max(at, instantOf(parent.issuedAt) ?? at));
  const derived = deriveGrant(parent, { id, subject, capabilities, issuedAt, constraints, metadata }, options);
  return derived.ok ? ok(derived.grant) : err({ code: derived.reason });
};

const isReserved = (id: string): boolean => id.startsWith(ESCALATION_GRANT_PREFIX);

/** Whose resources the grant is over, when all of its capabilities name the same one. */
const onlyOwner = ({ capabilities }: CapabilityGrant): Address | undefined => {
  const owner = capabilities[0]?.resource.owner;
  const isOnly =
    owner !== undefined && capabilities.every(({ resource }) => resource.owner !== undefined && sameAddress(resource.owner, owner));
  return isOnly ? owner : undefined;
};
