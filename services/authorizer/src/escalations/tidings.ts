import type { EscalationQuestion } from '@sharedos/contracts';
import type { Known } from './question.ts';

/** Told of what became of questions, once it stands in the log. Whoever tells waits for nothing. */
export interface Tidings {
  opened(namespaceId: string, question: EscalationQuestion): void;
  answered(namespaceId: string, state: Known): void;
}

export const NO_TIDINGS: Tidings = { opened: () => undefined, answered: () => undefined };
