import type { TimelineEntry } from '@sharedos/contracts';
import { principalName } from './principal-name.ts';
import { table } from './table.ts';

/** What was recorded of a turn or a message, a line each. */
export const timelineText = (timeline: readonly TimelineEntry[]): string =>
  table(
    ['AT', 'RECORD', 'CALL', 'TOOL', 'STATUS', 'CODE', 'BY'],
    timeline.map(({ at, what, callId, tool, status, outcome, code, by }) => [
      at,
      what,
      callId,
      tool,
      status ?? outcome,
      code,
      typeof by === 'object' ? principalName(by) : by,
    ]),
  );
