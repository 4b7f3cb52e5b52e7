import { type Instant, instantOf, revisionOf } from '@sharedos/contracts';
import type { Ports } from '../ports.ts';
import type { Tidings } from './tidings.ts';

/**
 * Tells once more what was asked and answered lately: the process that did it may have ended before it told anybody. An inbox holds the
 * same notice once, and a webhook knows it by its id.
 */
export const tellAgain = ({ fold, store }: Pick<Ports, 'fold' | 'store'>, tidings: Tidings, since: Instant): void => {
  for (const { namespaceId, state, position } of fold.namespaces.everyEscalation()) {
    const at = instantOf('answer' in state ? state.answer.at : state.question.requestedAt) ?? 0;
    if (at < since) continue;
    if (state.status === 'open') tidings.opened(namespaceId, state.question);
    else tidings.answered(namespaceId, state, revisionOf(store.storeId, position));
  }
};
