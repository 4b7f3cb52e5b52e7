import { type Delivery, pause } from '@sharedos/bus';
import {
  type Address,
  type AuthorityWho,
  type CapabilityGrant,
  type GrantWho,
  type Reply,
  type ResourceRef,
  type Result,
  type ProtocolError,
  type WhoPage,
  ok,
  timestampOf,
} from '@sharedos/contracts';
import { capabilityMatches, decideWith, invariant } from '@sharedos/kernel';
import type { GrantPage } from '../fold/authority-index.ts';
import { mayReadAuthority } from '../turns/may-read-authority.ts';
import type { CommandPorts } from '../ports.ts';
import type { TurnAuthorities } from '../turns/turn-authorities.ts';
import { worldOf } from '../turns/turn-world.ts';
import { type UpToDate, standingAt } from '../turns/up-to-date.ts';

const PAGE = 100;
/** Grants read at a time: a few milliseconds, in which nothing else is answered. */
const READ_AT_ONCE = 200;
/** Grants looked at for one page; one that few of them are on ends early. */
const LOOKED_AT_MAX = 10_000;

type Owned = ResourceRef & { readonly owner: Address };
type Asked = Omit<GrantWho, 'resource'> & { readonly resource: Owned };
type Place = NonNullable<WhoPage['next']>;

/** Which principals could do something to a resource, for a service. */
export const whoForService =
  (ports: CommandPorts, turns: TurnAuthorities) =>
  async (body: AuthorityWho, { namespaceId }: Delivery): Promise<Reply<WhoPage>> => {
    const page = await holders(ports, turns, namespaceId, { ...body, resource: { ...body.resource, owner: body.resource.owner } });
    return page.ok ? { ok: true, value: page.value } : page;
  };

/** The same for the owner of the resource, or for whoever may read authority. Anybody else is refused, and that is on record. */
export const whoForPrincipal = (ports: CommandPorts, turns: TurnAuthorities) => {
  const reading = mayReadAuthority<WhoPage>(ports, turns);
  return (body: GrantWho, delivery: Delivery): Promise<Reply<WhoPage>> => {
    const { principal, namespaceId } = delivery;
    invariant(principal !== undefined, 'who holds what is told to principals');
    const resource = { ...body.resource, owner: body.resource.owner ?? principal };
    return reading(delivery, { owner: resource.owner, body }, () => holders(ports, turns, namespaceId, { ...body, resource }));
  };
};

const holders = async (
  ports: CommandPorts,
  turns: TurnAuthorities,
  namespaceId: string,
  asked: Asked,
): Promise<Result<WhoPage, ProtocolError>> => {
  const here = await standingAt(ports, asked.revision);
  if (!here.ok) return here;
  const { limit = PAGE } = asked;
  const { revision } = here.value;
  const found: WhoPage['holders'] = [];
  let place: Place = asked.after ?? { of: 'owner' };
  let looked = 0;
  for (;;) {
    const { grants, next } = grantsAfter(ports, namespaceId, asked.resource.owner, place);
    for (const grant of grants) {
      if (found.length >= limit || looked >= LOOKED_AT_MAX) return ok({ holders: found, next: place, revision });
      looked += 1;
      place = { of: place.of, grantId: grant.id };
      if (await allows(ports, turns, here.value, grant, asked))
        found.push({ subject: grant.subject, authority: grant.issuer, grantId: grant.id });
    }
    if (next === undefined && place.of === 'several') return ok({ holders: found, revision });
    if (next === undefined) place = { of: 'several' };
    await pause(0);
  }
};

/** Grants over the owner's resources alone; or those that may be over them among others'. */
const grantsAfter = ({ fold }: CommandPorts, namespaceId: string, owner: Address, { of, grantId }: Place): GrantPage => {
  const page = { after: grantId, limit: READ_AT_ONCE };
  return of === 'owner' ? fold.index.ofOwner(namespaceId, owner, page) : fold.index.ofNoOwner(namespaceId, page);
};

/**
 * Whether this very grant would allow it: what its holder has from its issuer is decided as a turn would decide it, under the policy
 * in force. A grant that comes after another one that allows is not named, so a principal is, once for each authority and purpose.
 */
const allows = async (
  { fold, usage, clock }: CommandPorts,
  turns: TurnAuthorities,
  { position, revision }: UpToDate,
  { id, namespaceId, subject, issuer, capabilities, constraints }: CapabilityGrant,
  { resource, action, purpose }: Asked,
): Promise<boolean> => {
  const request = { resource, action };
  if (!capabilities.some((capability) => capabilityMatches(capability, request, resource))) return false;
  const admittedAt = Math.max(clock(), fold.index.latestInstant(position));
  const turn = turns.frozen(revision, position, admittedAt, {
    namespaceId,
    actor: subject,
    authority: issuer,
    owner: resource.owner,
    purpose: purpose ?? constraints.purposes?.[0] ?? 'any',
    traceId: 'who',
    enabledToolNamespaces: [],
    now: timestampOf(admittedAt),
  });
  if (!turn.authority.ok) return false;
  const rule = turn.authority.value.decide(request, { now: admittedAt, consume: false, mode: 'execute', ...turn.held });
  const { decision } = await decideWith(rule, worldOf(fold, usage, turn, { seen: {} }));
  return decision.allowed && decision.matchedGrantId === id;
};
