import type { AccessContext, Address, CapabilityConstraints, CapabilityRequirement } from '@sharedos/contracts';
import {
  type AncestorAsk,
  type HeldAuthority,
  type ParsedGrant,
  type World,
  holdAuthority,
  parseGrant,
  parseRequirement,
} from '@sharedos/kernel';

// The world that the kernel and its peers decide in: one agent that may read and list below the `docs` of so many projects.

export const ALICE: Address = { kind: 'human', userId: 'alice' };
const BOB: Address = { kind: 'agent', agentId: 'bob' };
const ADMITTED = '2026-01-01T10:00:00.000Z';
/** The instant everything is decided at. */
export const NOW = Date.parse(ADMITTED);

/** How many differing requests are asked in turn. */
export const REQUESTS = 256;

export const contextOf = (actor: Address = BOB): AccessContext => ({
  namespaceId: 'bench',
  actor,
  authority: ALICE,
  owner: ALICE,
  purpose: 'measure',
  traceId: 'trace',
  enabledToolNamespaces: [],
  now: ADMITTED,
});

export interface GrantLine {
  /** Ancestors of each grant: one line, shared by all. */
  readonly depth?: number;
  readonly actor?: Address;
}

const CONSTRAINTS: CapabilityConstraints = { purposes: ['measure'], expiresAt: '2026-12-31T00:00:00Z' };

export const projectOf = (index: number): string => `project-${index}`;
export const ACTIONS = ['read', 'list'] as const;

export const authorityOf = (grants: number, { depth = 0, actor = BOB }: GrantLine = {}): HeldAuthority => {
  const held = Array.from({ length: grants }, (_, index) =>
    parsed({
      id: `g${index}`,
      namespaceId: 'bench',
      subject: actor,
      issuer: ALICE,
      capabilities: [{ resource: { namespace: 'files', path: [projectOf(index), 'docs'] }, actions: [...ACTIONS], scope: 'descendants' }],
      constraints: CONSTRAINTS,
      issuedAt: '2026-01-01T09:00:00Z',
      ...(depth === 0 ? {} : { parentGrantId: 'ancestor-1' }),
    }),
  );
  const loaded = holdAuthority(contextOf(actor), held);
  if (!loaded.ok) throw new Error(`the grants of the bench cannot be held: ${loaded.error.code}`);
  return loaded.value;
};

/** Where the ancestors of {@link authorityOf} are found. */
export const ancestorsOf = (depth: number): World => {
  const line = new Map<string, ParsedGrant>(
    Array.from({ length: depth }, (_, index) => [
      `ancestor-${index + 1}`,
      parsed({
        id: `ancestor-${index + 1}`,
        namespaceId: 'bench',
        subject: ALICE,
        issuer: ALICE,
        capabilities: [{ resource: { namespace: 'files', path: [] }, actions: ['*'], scope: 'descendants' }],
        constraints: { ...CONSTRAINTS, delegationDepth: index + 1 },
        issuedAt: '2026-01-01T08:00:00Z',
        ...(index + 1 === depth ? {} : { parentGrantId: `ancestor-${index + 2}` }),
      }),
    ]),
  );
  return {
    ancestor: ({ grantId }: AncestorAsk) => {
      const found = line.get(grantId);
      return found === undefined ? 'not_found' : { found };
    },
  };
};

const parsed = (grant: unknown): ParsedGrant => {
  const read = parseGrant(grant);
  if (!read.ok) throw new Error('a grant of the bench does not meet its contract');
  return read.value;
};

/** What is asked of an authority with so many grants: spread over all of them, and allowed, or none of it. */
export const pathsOf = (grants: number, outcome: 'allow' | 'deny'): readonly (readonly string[])[] =>
  Array.from({ length: REQUESTS }, (_, index) => [projectOf(index % grants), outcome === 'allow' ? 'docs' : 'notes', `page-${index}.md`]);

export const requirementOf = (path: readonly string[]): CapabilityRequirement => ({
  resource: { namespace: 'files', path: [...path] },
  action: 'read',
});

/** Read once and kept, as a caller that decides often does. */
export const requirementsOf = (grants: number, outcome: 'allow' | 'deny'): readonly CapabilityRequirement[] =>
  pathsOf(grants, outcome).map((path) => {
    const requirement = parseRequirement(requirementOf(path));
    if (requirement === undefined) throw new Error('a request of the bench does not meet its contract');
    return requirement;
  });
