import { type Address, type CapabilityGrant, type LogEvent, timestampOf } from '@sharedos/contracts';
import { AuthorityIndex } from '../../services/authorizer/src/fold/authority-index.ts';
import { readGrantEvent } from '../../services/authorizer/src/changes/grant-command.ts';

export const NAMESPACE = 'bench';
/** When the last of the grants was issued; nothing that should live has ended then. */
export const NOW = Date.parse('2027-01-01T00:00:00Z');
export const OWNER = { kind: 'human', userId: 'user-0' } as const satisfies Address;
export const HOLDER = { kind: 'agent', agentId: 'agent-0' } as const satisfies Address;

/** A number that looks like chance and is the same in every run. */
const mixed = (number: number): number => {
  const product = Math.imul(number, 0x9e3779b1) >>> 0;
  return (product ^ (product >>> 15)) >>> 0;
};

export const grantOf = (id: string, more: Partial<CapabilityGrant> = {}): CapabilityGrant => ({
  id,
  namespaceId: NAMESPACE,
  subject: HOLDER,
  issuer: OWNER,
  capabilities: [
    {
      resource: { namespace: 'files', path: ['Work'], owner: OWNER },
      actions: ['read', 'stat'],
      scope: 'descendants',
    },
  ],
  constraints: {},
  issuedAt: timestampOf(NOW - 1_000),
  ...more,
});

/** The event of one of very many grants: ten thousand agents, each of one of a thousand users, each grant with an end and a purpose. */
export const eventOf = (number: number): LogEvent => {
  const agent = mixed(number) % 10_000;
  const issuer = { kind: 'human', userId: `user-${agent % 1_000}` } as const;
  const issuedAt = timestampOf(NOW - 2_000_000_000 + number);
  const grant = grantOf(`grant-${mixed(number + 1).toString(36)}-${number}`, {
    subject: { kind: 'agent', agentId: `agent-${agent}` },
    issuer,
    capabilities: [
      {
        resource: { namespace: 'files', path: ['Work', `folder-${number % 977}`], owner: issuer },
        actions: ['read', 'stat'],
        scope: 'descendants',
      },
    ],
    constraints: { expiresAt: timestampOf(NOW + (mixed(number + 2) % 1_000_000_000)), purposes: ['weekly review'] },
    issuedAt,
  });
  // As the log gives it to a reader: parsed from its bytes.
  return JSON.parse(
    JSON.stringify({
      eventId: '6f1c1f0e-58ab-4b1e-9b0a-3a1d6f0c9d42',
      type: 'GrantIssued',
      schemaVersion: 1,
      at: issuedAt,
      principal: issuer,
      correlationId: 'bench',
      data: { grant },
    }),
  ) as LogEvent;
};

/**
 * Folds so many grants.
 *
 * @returns The index, and the seconds that the fold took without making the events: by the clock, and of processor time, in which
 *   the threads of the collector are counted too.
 */
export const folded = (grants: number): { readonly index: AuthorityIndex; readonly seconds: number; readonly processor: number } => {
  const index = new AuthorityIndex();
  const AT_ONCE = 1_000;
  let [seconds, processor] = [0, 0];
  for (let first = 0; first < grants; first += AT_ONCE) {
    const events = Array.from({ length: Math.min(AT_ONCE, grants - first) }, (_, number) => eventOf(first + number));
    const [begun, used] = [performance.now(), process.cpuUsage()];
    events.forEach((event, number) => {
      const read = readGrantEvent(event);
      if (read === undefined) throw new Error('an event of the bench cannot be read');
      index.apply(NAMESPACE, read, NOW - 2_000_000_000 + first + number, first + number + 1);
    });
    index.forget(first);
    const { user, system } = process.cpuUsage(used);
    processor += (user + system) / 1_000_000;
    seconds += (performance.now() - begun) / 1_000;
  }
  return { index, seconds, processor };
};
