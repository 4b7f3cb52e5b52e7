import { randomUUID } from 'node:crypto';
import {
  type CapabilityGrant,
  type Explanation,
  type GrantChangesPage,
  GrantDerive,
  GrantExplain,
  GrantExplainReply,
  GrantGet,
  GrantIssue,
  type GrantList,
  GrantList as GrantListMessage,
  GrantListReply,
  GrantReply,
  GrantRevoke,
  type GrantTerms,
  GrantTree,
  GrantTreeReply,
  GrantWatch,
  GrantWatchReply,
  GrantWho,
  GrantWhoReply,
  type Result,
  type Revision,
  type TreePage,
  WATCH_MS_MAX,
  type WhoPage,
} from '@sharedos/contracts';
import type { ClientError } from './client-error.ts';
import { type Session, ask } from './session.ts';

export interface GrantAt {
  readonly grant: CapabilityGrant;
  /** Every turn opened at or after this revision sees the grant as it is here. */
  readonly revision: Revision;
}

/** Commands take a `commandId`: sending the same one again repeats the answer and changes nothing. One is minted when absent. */
export interface GrantCommands {
  /** A root grant over resources of the caller's own. */
  issue(grant: GrantTerms, commandId?: string): Promise<Result<GrantAt, ClientError>>;
  /** Passes on part of a grant that the caller holds. */
  derive(parentGrantId: string, grant: GrantTerms, commandId?: string): Promise<Result<GrantAt, ClientError>>;
  /** Once this is answered, no turn opens that still uses the grant or one derived from it. */
  revoke(grantId: string, reason?: string, commandId?: string): Promise<Result<GrantAt, ClientError>>;
  get(grantId: string): Promise<Result<GrantAt, ClientError>>;
  /** A grant and what was derived from it, each before what was derived from it; `next` continues as `after`. */
  tree(asked: GrantTree): Promise<Result<TreePage, ClientError>>;
  /** Waits for changes after a revision; asking on after the revision of each answer, one misses none. */
  watch(asked: GrantWatch): Promise<Result<GrantChangesPage, ClientError>>;
  /** Why a request would be answered as it would: now, or as authority stood at a revision. */
  explain(asked: GrantExplain): Promise<Result<Explanation, ClientError>>;
  /** Who could do this to this resource, under whose authority, and by which grant; `next` continues as `after`. */
  who(asked: GrantWho): Promise<Result<WhoPage, ClientError>>;
  /** Grants that the caller issued or holds, by id; `next` continues. */
  list(
    query: GrantList,
  ): Promise<
    Result<{ readonly grants: readonly CapabilityGrant[]; readonly next?: string | undefined; readonly revision: Revision }, ClientError>
  >;
}

export const grantCommands = (session: Session): GrantCommands => ({
  issue: (grant, commandId = randomUUID()) => ask(session, 'grant.issue', GrantIssue, { commandId, grant }, GrantReply),
  derive: (parentGrantId, grant, commandId = randomUUID()) =>
    ask(session, 'grant.derive', GrantDerive, { commandId, parentGrantId, grant }, GrantReply),
  revoke: (grantId, reason, commandId = randomUUID()) =>
    ask(session, 'grant.revoke', GrantRevoke, { commandId, grantId, ...(reason === undefined ? {} : { reason }) }, GrantReply),
  get: (grantId) => ask(session, 'grant.get', GrantGet, { grantId }, GrantReply),
  tree: (asked) => ask(session, 'grant.tree', GrantTree, asked, GrantTreeReply),
  watch: (asked) => ask(session, 'grant.watch', GrantWatch, asked, GrantWatchReply, { waitMs: asked.waitMs ?? WATCH_MS_MAX }),
  explain: (asked) => ask(session, 'grant.explain', GrantExplain, asked, GrantExplainReply),
  who: (asked) => ask(session, 'grant.who', GrantWho, asked, GrantWhoReply),
  list: (query) => ask(session, 'grant.list', GrantListMessage, query, GrantListReply),
});
