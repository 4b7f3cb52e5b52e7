import { type Delivery, isRoot, rootsOf } from '@sharedos/bus';
import { type AccessContext, type Address, type ProtocolError, type Result, err, ok, refused, timestampOf } from '@sharedos/contracts';
import { ADMIN_PURPOSE, type AdminAct, adminChanged, adminRefused } from '@sharedos/kernel';
import type { Ports } from './ports.ts';

/** What a turn of somebody else may be administered for. */
export type TurnsAction = 'cancel' | 'read';
/** What is administered in any part of the namespace. */
export type AdminAction = TurnsAction | 'resolve';

/** A part of the namespace, and what is to be done with it. */
export interface AdminQuestion {
  readonly area: 'turns' | 'tools' | 'ledger';
  readonly action: AdminAction;
}

type TurnsPorts = Pick<Ports, 'authority' | 'audit' | 'roots' | 'clock' | 'ids'>;

const VALID_FOR_MS = 30_000;
/** Acts of a root that are on record where they are done, and those that change nothing. */
const RECORDED_ELSEWHERE: ReadonlySet<AdminAction> = new Set(['read', 'resolve']);

export const resourceOf = (area: AdminQuestion['area']) => ({ namespace: 'sharedos.admin', path: [area] });

/**
 * Whether the caller may see or cancel the turns of others: it is a root principal of the namespace, or one of them granted it
 * `action` on `sharedos.admin` / `["turns"]`. The authorizer decides, and its decision is on record before anything is done; so is
 * the refusal, and, for a root, the act itself.
 */
export const mayAdministerTurns = (
  ports: TurnsPorts,
  delivery: Asking,
  action: TurnsAction,
  about: string,
): Promise<Result<void, ProtocolError>> => mayAdminister(ports, delivery, { area: 'turns', action }, about);

type Asking = Pick<Delivery, 'namespaceId' | 'traceId' | 'verb'> & { readonly principal: Address };

/** The same for any part of the namespace that this service answers for. */
export const mayAdminister = async (
  ports: TurnsPorts,
  delivery: Asking,
  { area, action }: AdminQuestion,
  about: string,
): Promise<Result<void, ProtocolError>> => {
  const { namespaceId, principal, verb, traceId = ports.ids() } = delivery;
  const roots = ports.roots ?? {};
  const act: AdminAct = {
    id: ports.ids(),
    at: ports.clock(),
    namespaceId,
    principal,
    traceId,
    command: verb,
    resource: resourceOf(area),
    about,
  };
  if (isRoot(roots, namespaceId, principal)) {
    if (RECORDED_ELSEWHERE.has(action) || (await ports.audit(adminChanged(act))).ok) return ok(undefined);
    return refused('audit_unavailable', 'the cancellation could not be recorded; try again', true);
  }
  for (const root of rootsOf(roots, namespaceId)) {
    const allowed = await allowedBy(ports, { namespaceId, principal, traceId }, root, { area, action });
    if (!allowed.ok) return allowed;
    if (allowed.value) return ok(undefined);
  }
  await ports.audit(adminRefused(act, 'not_an_administrator'));
  return refused('not_an_administrator', `this needs a grant over sharedos.admin / ${area} from a root principal of the namespace`);
};

const allowedBy = async (
  { authority, audit, clock, ids }: TurnsPorts,
  { namespaceId, principal, traceId }: { readonly namespaceId: string; readonly principal: Address; readonly traceId: string },
  root: Address,
  { area, action }: AdminQuestion,
): Promise<Result<boolean, ProtocolError>> => {
  const context: AccessContext = {
    namespaceId,
    actor: principal,
    authority: root,
    owner: root,
    purpose: ADMIN_PURPOSE,
    traceId,
    enabledToolNamespaces: [],
    now: timestampOf(clock()),
  };
  const unknown = (code: string) => refused(code, `it could not be found out whether you may administer ${area}; try again`, true);
  const opened = await authority.open({ turnId: ids(), context, validForMs: VALID_FOR_MS, auditId: ids() });
  if (!opened.ok) return unknown(opened.error.code);
  const request = { resource: { ...resourceOf(area), owner: root }, action };
  const verdict = await authority.decide(opened.value.token, context, { kind: 'authorize', request, consume: false }, [ids(), ids()]);
  if (!verdict.ok) return unknown(verdict.error.code);
  for (const event of verdict.value.audit) if (!(await audit(event)).ok) return err(unknown('audit_unavailable').error);
  return ok(verdict.value.status === 'allowed');
};
