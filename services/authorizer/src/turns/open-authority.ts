import {
  type AccessContext,
  type AuthorityOpen,
  type AuthoritySnapshot,
  type Instant,
  type OpenedAuthority,
  type Reply,
  type RuntimeChoice,
  instantOf,
  revisionOf,
  timestampOf,
  refused,
} from '@sharedos/contracts';
import type { Position } from '@sharedos/event-store';
import { GRANTS_MAX, authorityResolved } from '@sharedos/kernel';
import { SPAN, withSpan } from '@sharedos/telemetry';
import type { NamespaceIndex } from '../fold/namespace-index.ts';
import type { Ports } from '../ports.ts';
import type { TurnAuthorities } from './turn-authorities.ts';
import { contextHash } from './turn-token.ts';

/**
 * Opens the authority of a turn, at or after everything acknowledged before the call: barrier, fold up to it, admit.
 *
 * The turn is admitted no earlier than any event it sees, whatever the clocks say, so a revocation is never in its future.
 *
 * @see docs/adr/0004-linearizable-open.md
 */
export const openAuthority =
  ({ store, fold, tokens, audit, clock, limits }: Ports, turns: TurnAuthorities) =>
  async ({ turnId, context, validForMs, auditId }: AuthorityOpen): Promise<Reply<OpenedAuthority>> => {
    const deadline = performance.now() + limits.deadlineMs;
    if (fold.trouble !== undefined) return refused('authority_unavailable', fold.trouble, true);
    const barrier = await withSpan(SPAN.logBarrier, {}, () => store.barrier(limits.deadlineMs));
    if (!barrier.ok) return refused('authority_unavailable', 'the log did not say how far it reaches', true);
    const reached = await fold.until(barrier.value, deadline - performance.now());
    if (!reached.ok) return refused('authority_unavailable', 'this replica is behind the log', true);

    const position = fold.position;
    const revision = revisionOf(store.storeId, position);
    const admittedAt = Math.max(instantOf(context.now) ?? Infinity, clock(), fold.index.latestInstant(position));
    if (!Number.isFinite(admittedAt)) return refused('invalid_request', 'context.now is no instant');
    const frozen = await withSpan(SPAN.authorityLoad, {}, () =>
      turns.frozen(revision, position, admittedAt, { ...context, now: timestampOf(admittedAt) }),
    );
    const claims = { turnId, contextHash: contextHash(context), revision, admittedAt: timestampOf(admittedAt) };
    turns.remember(claims, frozen);

    const resolved = frozen.authority;
    const mark = { id: auditId, at: admittedAt, context, place: { revision, turnId } };
    const { policy } = frozen;
    const underPolicy = policy?.status === 'loaded' ? { hostPolicyVersion: policy.version } : {};
    const ports = { hostCeiling: policy === undefined ? 'absent' : 'installed', policy } as const;
    const loaded = resolved.ok ? { authority: { snapshot: shortened(resolved.value.held.snapshot) } } : { failure: resolved.error };
    const event = authorityResolved(mark, loaded, ports);
    if (!(await audit(event)).ok) return refused('audit_unavailable', 'the load of authority could not be recorded', true);

    const validUntil = timestampOf((admittedAt + validForMs + limits.turnGraceMs) satisfies Instant);
    const token = tokens.sign({ ...claims, validUntil });
    const runtime = runtimeChosen(fold.namespaces, context, position);
    const { enabled } = fold.namespaces.toolSelectionAt(context.namespaceId, position);
    const { asksAboutRefusedCalls } = fold.namespaces.settingsAt(context.namespaceId, position).settings;
    const holdsBound = resolved.ok && resolved.value.held.grants.some(({ boundTo }) => boundTo !== undefined);
    const opened = {
      token,
      revision,
      admittedAt: timestampOf(admittedAt),
      validUntil,
      ...(runtime === undefined ? {} : { runtime }),
      ...(enabled === undefined ? {} : { toolNamespaces: [...enabled] }),
      ...(holdsBound ? { boundCalls: true as const } : {}),
      ...(asksAboutRefusedCalls ? { asksAboutRefusedCalls: true as const } : {}),
    };
    if ('authority' in loaded)
      return { ok: true, value: { status: 'resolved', ...opened, ...underPolicy, snapshot: loaded.authority.snapshot } };
    const { code, detail } = loaded.failure;
    return {
      ok: true,
      value: { status: 'unavailable', ...opened, ...underPolicy, code, ...(detail === undefined ? {} : { detail }) },
    };
  };

/** Names the first of very many grants: their number and the hash, which stand for all of them, do not change. */
const shortened = (snapshot: AuthoritySnapshot): AuthoritySnapshot =>
  snapshot.grantCount > GRANTS_MAX ? { ...snapshot, grantIds: snapshot.grantIds.slice(0, GRANTS_MAX) } : snapshot;

/** What an agent's registration says of its runtime, once its authority and its owner have both agreed to it. */
const runtimeChosen = (
  namespaces: NamespaceIndex,
  { namespaceId, actor }: AccessContext,
  position: Position,
): RuntimeChoice | undefined => {
  const registered = actor.kind === 'agent' ? namespaces.agentAt(namespaceId, actor.agentId, position) : undefined;
  return registered?.status === 'active' ? registered.terms.runtime : undefined;
};
