import { reportDistrust } from '@sharedos/bus';
import { type AuditEvent, type UseTaken, addressPath, timestampOf } from '@sharedos/contracts';
import { authorizationChecked, decidedWithoutAuthority, isInfrastructureDenial } from '@sharedos/kernel';
import { type Outgoing, markOf } from './outgoing.ts';
import type { Ports } from './ports.ts';

/** A send is one operation and soon over; its token need not outlive it by more. */
const VALID_FOR_MS = 30_000;

/**
 * How a send was decided, with the records of it. `unavailable`: nobody could find out, or the use could not be claimed; nothing is
 * sent on it, and asked again later it may be decided.
 */
export type DecidedSend =
  | {
      readonly kind: 'allowed';
      readonly audit: AuditEvent[];
      readonly grantId?: string | undefined;
      readonly use?: UseTaken | undefined;
      readonly above?: UseTaken[] | undefined;
    }
  | { readonly kind: 'denied' | 'unavailable'; readonly code: string; readonly audit: AuditEvent[] };

export type OpenedSend = Awaited<ReturnType<Ports['authority']['open']>>;

/** Asks for the authority to decide one send by, as of this moment. */
export const openSend = (ports: Ports, { context, turnId }: Outgoing): Promise<OpenedSend> =>
  ports.authority.open({ turnId, context, validForMs: VALID_FOR_MS, auditId: ports.ids() });

/**
 * Decides one message for its one recipient as of this moment, and spends the use that it takes. The use is taken under the name of
 * the send, so that deciding it again takes no second one of the same grant.
 */
export const decideSend = async (ports: Ports, send: Outgoing, opening = openSend(ports, send)): Promise<DecidedSend> => {
  const { context, envelope, operation } = send;
  const request = {
    resource: { namespace: 'sharedos.messaging', path: [...addressPath(envelope.receiver)], owner: context.owner },
    action: 'send',
  };
  const opened = await opening;
  const verdict = opened.ok
    ? await ports.authority.decide(
        opened.value.token,
        context,
        { kind: 'authorize', request, consume: true, operation, operationId: envelope.id },
        [ports.ids(), ports.ids()],
      )
    : opened;
  const recorded = (decided: Parameters<typeof authorizationChecked>[1]['decided']): AuditEvent =>
    authorizationChecked(markOf(ports, send), { request, decided, consume: true, operationId: envelope.id });
  if (!verdict.ok) {
    const decided = decidedWithoutAuthority({ code: 'grant_source_failed' });
    return { kind: 'unavailable', code: 'authority_unavailable', audit: [recorded(decided)] };
  }
  const { status, code, decision, use, above, audit } = verdict.value;
  if (status !== 'allowed') return { kind: isInfrastructureDenial(code) ? 'unavailable' : 'denied', code, audit };
  if (use !== undefined && !(await spend(ports, send, [use, ...(above ?? [])]))) {
    const unclaimed = { decision: { allowed: false, reasonCode: 'usage_store_unavailable' } };
    return { kind: 'unavailable', code: 'usage_store_unavailable', audit: [recorded(unclaimed)] };
  }
  return { kind: 'allowed', audit, grantId: decision?.matchedGrantId, use, above };
};

/** Makes uses that were handed out really spent: all of them, or nothing may run. */
const spend = async (
  { ledger, bus, clock }: Ports,
  { context, operation, turnId }: Outgoing,
  uses: readonly UseTaken[],
): Promise<boolean> => {
  const { namespaceId } = context;
  const claim = { at: timestampOf(clock()), operation, turn: turnId };
  const claims = await Promise.all(
    uses.map(async ({ grantId, ordinal, epoch }) => {
      const claimed = await ledger.claimUse(namespaceId, { ...claim, grantId, ordinal });
      if (!claimed.ok && claimed.error.kind === 'taken') await reportDistrust(bus, namespaceId, epoch);
      return claimed.ok;
    }),
  );
  return claims.every(Boolean);
};
