import type { SharedOS } from '@sharedos/client';
import { type Address, type CapabilityGrant, sameAddress } from '@sharedos/contracts';
import { type Invocation, connectAs, contextOf, speaker, valueOf } from './command-line.ts';
import { parsePrincipal, principalName } from './principal-name.ts';

/** Connections as several principals, each made when it is first needed. */
export interface Speakers {
  readonly namespaceId: string;
  /** Whom the command speaks for when nothing else says who: `--as`, or the context's principal. */
  readonly speaker: Address;
  /** Everybody that the context has credentials for. */
  readonly known: readonly Address[];
  /** @throws CommandFailure when the context has no credentials for it. */
  as(principal: Address): Promise<SharedOS>;
}

export const withSpeakers = async <T>(invocation: Invocation, use: (speakers: Speakers) => Promise<T>): Promise<T> => {
  const context = await contextOf(invocation);
  const open = new Map<string, Promise<SharedOS>>();
  try {
    return await use({
      namespaceId: context.namespaceId,
      speaker: speaker(context, invocation.options.as).principal,
      known: Object.keys(context.principals).map(parsePrincipal),
      as: (principal) => {
        const name = principalName(principal);
        const known = open.get(name) ?? connectAs(invocation, context, name).then(({ sharedos }) => sharedos);
        open.set(name, known);
        return known;
      },
    });
  } finally {
    for (const connection of open.values()) await connection.then((sharedos) => sharedos.close()).catch(() => undefined);
  }
};

const PAGE = 500;

/** All grants that a principal issued or holds, the ended ones among them. */
export const grantsOf = async ({ grants }: SharedOS, role: 'issuer' | 'subject'): Promise<readonly CapabilityGrant[]> => {
  const found: CapabilityGrant[] = [];
  for (let after: string | undefined; ;) {
    const page = valueOf(await grants.list({ role, limit: PAGE, ...(after === undefined ? {} : { after }) }));
    found.push(...page.grants);
    if (page.next === undefined) return found;
    after = page.next;
  }
};

/**
 * Adds the grants that others were derived from, as far as anybody the context speaks for may see them: each is held by whoever
 * issued the next one.
 */
export const withAncestors = async (speakers: Speakers, grants: Map<string, CapabilityGrant>): Promise<void> => {
  const missing = [...grants.values()].filter(({ parentGrantId }) => parentGrantId !== undefined && !grants.has(parentGrantId));
  const asked = new Set<string>();
  for (let child = missing.pop(); child !== undefined; child = missing.pop()) {
    const { parentGrantId, issuer } = child;
    if (parentGrantId === undefined || grants.has(parentGrantId) || asked.has(parentGrantId)) continue;
    asked.add(parentGrantId);
    if (!speakers.known.some((one) => sameAddress(one, issuer))) continue;
    const found = await (await speakers.as(issuer)).grants.get(parentGrantId);
    if (!found.ok && found.error.kind === 'refused') continue;
    const { grant } = valueOf(found);
    grants.set(grant.id, grant);
    missing.push(grant);
  }
};
