import type { EscalationQuestion, Revision } from '@sharedos/contracts';
import type { Known } from './question.ts';

/** Told of what became of questions, once it stands in the log. Whoever tells waits for nothing, and may tell the same twice. */
export interface Tidings {
  opened(namespaceId: string, question: EscalationQuestion): void;
  /** @param revision From which on a turn finds what was granted. */
  answered(namespaceId: string, state: Known, revision: Revision): void;
}

export const NO_TIDINGS: Tidings = { opened: () => undefined, answered: () => undefined };
