import { type AuditEvent, AuditRecordMessage, type Result, type Unavailable, auditSubject, ok, unavailable } from '@sharedos/contracts';
import type { Bus } from './bus.ts';

/**
 * Writes audit records into the stream `AUDIT`, each to the subject of its outcome and type, and waits until it is stored.
 *
 * No broker message id: delivery is at least once and readers fold by the record's own id, so a window of the broker's would
 * add a second, weaker rule. A record that did not get through is told to `onLost`, whoever asked for it.
 */
export const storeAudit =
  (bus: Bus, timeoutMs: number, onLost: (event: AuditEvent, why: string) => void) =>
  async (event: AuditEvent): Promise<Result<void, Unavailable>> => {
    const stored = await bus.publishStored(auditSubject(event), { message: AuditRecordMessage, body: event }, { timeoutMs });
    if (stored.ok) return ok(undefined);
    const why = 'reason' in stored.error ? stored.error.reason : stored.error.kind;
    onLost(event, why);
    return unavailable(why);
  };
