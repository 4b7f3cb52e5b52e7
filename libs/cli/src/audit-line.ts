import type { AuditEvent } from '@sharedos/contracts';
import { principalName } from './principal-name.ts';
import { resourceName } from './resource-name.ts';
import { printable } from './table.ts';

const MARK = { allowed: '✓', succeeded: '✓', denied: '✗', failed: '!', escalated: '?' } as const;

/** One record on one line: when, what, who, over what, and why not. */
export const auditLine = (event: AuditEvent): string =>
  printable(
    [
      event.at.slice(11, 23),
      MARK[event.outcome],
      `${event.type} ${event.outcome}`.padEnd(32),
      principalName(event.actor),
      event.authority.kind === event.actor.kind && principalName(event.authority) === principalName(event.actor)
        ? ''
        : `for ${principalName(event.authority)}`,
      event.tool ?? '',
      event.action ?? '',
      event.resource === undefined ? '' : resourceName(event.resource),
      event.receiver === undefined ? '' : `to ${principalName(event.receiver)}`,
      event.reason === undefined ? '' : `(${event.reason})`,
    ]
      .filter((part) => part !== '')
      .join(' '),
  );
