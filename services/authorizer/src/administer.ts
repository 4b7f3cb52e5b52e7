import type { Delivery } from '@sharedos/bus';
import {
  type Address,
  type CapabilityGrant,
  type Instant,
  type ProtocolError,
  type Reply,
  type Result,
  type Revision,
  type Unavailable,
  addressKey,
  canonicalJson,
  hashOf,
  refused,
} from '@sharedos/contracts';
import { eventIdOf } from '@sharedos/event-store';
import { type AdminAct, adminChanged, adminRefused, invariant } from '@sharedos/kernel';
import { ATTRIBUTE, SPAN, recordOutcome, withSpan } from '@sharedos/telemetry';
import type { Ports } from './ports.ts';

/** One command on the management plane, from the principal that the broker let publish it. */
export interface AdminCommand {
  readonly commandId: string;
  readonly grantId: string;
  /** The whole command as it was sent, to tell it from others under the same command id. */
  readonly body: unknown;
}

export interface Changed {
  readonly grant: CapabilityGrant;
  readonly revision: Revision;
  /** Whether the log changed; a command that had been carried out before, or asks for what is already so, changed nothing. */
  readonly changed: boolean;
}

export type CommandRefusal = { readonly code: string } | Unavailable;

/**
 * Carries out a command and records it, whether it changed something or was refused. The change stands in the log before its
 * record is written; a refusal is refused whether or not it could be recorded.
 */
export const administer = async (
  { audit, clock }: Pick<Ports, 'audit' | 'clock'>,
  delivery: Delivery,
  { commandId, grantId, body }: AdminCommand,
  act: (by: { readonly principal: Address; readonly at: Instant }) => Promise<Result<Changed, CommandRefusal>>,
): Promise<Reply<{ grant: CapabilityGrant; revision: Revision }>> => {
  const { principal, namespaceId, verb } = delivery;
  invariant(principal !== undefined, 'a command of the management plane comes from a principal');
  const at = clock();
  return withSpan(
    SPAN.grantCommand,
    { attributes: { [ATTRIBUTE.namespaceId]: namespaceId, [ATTRIBUTE.grantId]: grantId } },
    async (span) => {
      const outcome = await act({ principal, at });
      if (!outcome.ok && 'reason' in outcome.error) {
        recordOutcome(span, 'failed', 'log_unavailable');
        return refused('log_unavailable', 'the log did not answer in time; send the command again with the same command id', true);
      }
      // A command that is sent again makes the same record again, and readers fold records by id. So the id must hold all that
      // makes two acts different, or whoever uses one command id for everything would show as having acted once.
      const recordOf = (...what: readonly string[]): AdminAct => ({
        id: eventIdOf({
          namespaceId,
          principal: addressKey(principal),
          verb,
          commandId: canonicalJson([commandId, grantId, ...what]),
          index: 0,
        }),
        at,
        namespaceId,
        principal,
        traceId: delivery.traceId ?? commandId,
        command: verb,
        commandId,
        grantId,
      });
      if (!outcome.ok) {
        const { code } = outcome.error as { readonly code: string };
        recordOutcome(span, 'denied', code);
        await audit(adminRefused(recordOf('refused', code, hashOf(body)), code));
        return { ok: false, error: refusalOf(code) };
      }
      const { grant, revision, changed } = outcome.value;
      recordOutcome(span, 'succeeded');
      if (changed) await audit(adminChanged({ ...recordOf('changed'), place: { revision } }));
      return { ok: true, value: { grant, revision } };
    },
  );
};

const TEXTS: Readonly<Record<string, string>> = {
  grant_exists: 'a grant with this id exists or existed; choose another id',
  grant_not_found: 'there is no such grant in this namespace',
  not_the_issuer: 'only its issuer can revoke a grant',
  not_the_holder: 'only its holder can pass a grant on',
  identity_mismatch: 'the body names another principal than the one that published it',
  parent_inactive: 'the parent grant was revoked',
  parent_not_delegable: 'the parent grant may not be passed on: whoever issued it gave it no delegation depth',
  bounded_parent_not_delegable: 'a grant with a bounded number of uses cannot be passed on',
  depth_exhausted: 'the parent grant may be passed on fewer times than asked: ask for a smaller delegation depth, or none',
  capability_not_within_parent:
    'each capability must lie within one capability of the parent grant: its owner, resource, actions and scope',
  purpose_not_within_parent: 'the purposes must be among those of the parent grant',
  window_not_within_parent: 'the time it holds must be a window within that of the parent grant',
  empty_capabilities: 'a grant names at least one capability',
  id_collides_with_parent: 'a grant cannot have the id of its parent; choose another id',
  issued_before_parent: 'a grant cannot be older than its parent',
  command_too_large: 'the grant is too large, or nested too deep, for the log',
};

const refusalOf = (code: string): ProtocolError => ({ code, message: TEXTS[code] ?? `the command was refused: ${code}`, retryable: false });
