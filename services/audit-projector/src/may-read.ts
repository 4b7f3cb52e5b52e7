import type { Delivery } from '@sharedos/bus';
import { type AccessContext, type Address, type Result, refused, sameAddress, timestampOf } from '@sharedos/contracts';
import { adminRefused, invariant } from '@sharedos/kernel';
import type { Ports } from './ports.ts';

const VALID_FOR_MS = 30_000;

/** What reading the records is for; a grant that names purposes must name this one. */
export const AUDIT_PURPOSE = 'sharedos.audit';

type Refusal = ReturnType<typeof refused>['error'];

/**
 * Whether the caller may read the records of its namespace: a root principal of it must have granted `read` on `sharedos` /
 * `["audit"]`. The decision is recorded like any other. Reading spends nothing: a bounded grant is asked whether a use is left.
 */
export const mayRead = async (
  ports: Pick<Ports, 'authority' | 'audit' | 'roots' | 'clock' | 'ids'>,
  { namespaceId, principal, traceId, verb }: Delivery,
  authority: Address | undefined,
): Promise<Result<Address, Refusal>> => {
  invariant(principal !== undefined, 'records are read by principals');
  const root = rootOf(ports.roots, namespaceId, authority);
  if (root === undefined) {
    const act = { id: ports.ids(), at: ports.clock(), namespaceId, principal, traceId: traceId ?? ports.ids(), command: verb };
    await ports.audit(adminRefused(act, 'not_a_root'));
    return refused('not_a_root', 'records are granted by a root principal of the namespace, and this is none');
  }
  const context: AccessContext = {
    namespaceId,
    actor: principal,
    authority: root,
    owner: root,
    purpose: AUDIT_PURPOSE,
    traceId: traceId ?? ports.ids(),
    enabledToolNamespaces: [],
    now: timestampOf(ports.clock()),
  };
  const denied = await deniedBy(ports, context);
  return denied ?? { ok: true, value: root };
};

/** Anybody may issue grants over resources called `sharedos`; only those of the namespace's roots open its records. */
const rootOf = (roots: Ports['roots'], namespaceId: string, authority: Address | undefined): Address | undefined => {
  const known = Object.hasOwn(roots, namespaceId) ? (roots[namespaceId] ?? []) : [];
  return authority === undefined ? known[0] : known.find((root) => sameAddress(root, authority));
};

const deniedBy = async (
  { authority, ids, audit }: Pick<Ports, 'authority' | 'audit' | 'ids'>,
  context: AccessContext,
): Promise<ReturnType<typeof refused> | undefined> => {
  const opened = await authority.open({ turnId: ids(), context, validForMs: VALID_FOR_MS, auditId: ids() });
  if (!opened.ok) return refused(opened.error.code, 'it could not be found out whether you may read the records', true);
  const request = { resource: { namespace: 'sharedos', path: ['audit'], owner: context.owner }, action: 'read' };
  const verdict = await authority.decide(opened.value.token, context, { kind: 'authorize', request, consume: false }, [ids(), ids()]);
  if (!verdict.ok) return refused(verdict.error.code, 'it could not be found out whether you may read the records', true);
  for (const event of verdict.value.audit) {
    if (!(await audit(event)).ok) return refused('audit_unavailable', 'the decision could not be recorded', true);
  }
  return verdict.value.status === 'allowed' ? undefined : refused(verdict.value.code, 'you may not read the records of this namespace');
};
