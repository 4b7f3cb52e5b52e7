import type { AccessContext, CapabilityGrant } from '@sharedos/contracts';

/**
 * Everything a decision may depend on, as plain data, so that the kernel and the longhand rule can each be asked about the very
 * same world. Ports that can be absent or fail are described and not implemented.
 */
export interface SmallWorld {
  readonly context: AccessContext;
  /** `N` as text, which may be unreadable. */
  readonly now: string;
  /** What the grant source returned, unread. */
  readonly held: unknown;
  readonly grantLimit: number;
  /** Grants that the resolver can find; the first with the id counts. */
  readonly stored: readonly CapabilityGrant[];
  /** `leaky` finds an id in every namespace; `lying` answers with another grant than the one asked for. */
  readonly resolver: 'sound' | 'missing' | 'failing' | 'leaky' | 'lying';
  readonly ancestorsMax: number;
  readonly usage: 'sound' | 'missing' | 'failing';
  /** Uses taken so far by grant id; absent means none. */
  readonly used: Readonly<Record<string, number>>;
  /** Ids of the grants that the host's own check rejects; absent when it has no such check. */
  readonly verifierRejects?: readonly string[];
  /** Ids revoked by now, or that nobody can say; absent when no live revocation is installed. */
  readonly revokedNow?: readonly string[] | 'unreadable';
  readonly ceiling?: SmallCeiling;
}

/** A ceiling that judges by grant id alone. `breaks` gets an answer that is none. */
export interface SmallCeiling {
  readonly policy: 'absent' | 'loaded' | 'unavailable';
  readonly refuses: readonly string[];
  readonly breaks: readonly string[];
}

export interface Question {
  readonly mode: 'execute' | 'discover';
  readonly consume: boolean;
}
