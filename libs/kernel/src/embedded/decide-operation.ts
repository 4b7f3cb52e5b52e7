import type { AccessContext, AuthorizationDecision, AuthorizationRequest } from '@sharedos/contracts';
import { authorizationChecked } from '../audit.ts';
import { type Decided, decidedWithoutAuthority } from '../decide.ts';
import { SPAN, measure } from '../spans.ts';
import { type Held, type KernelCore, compiledAuthority, instantIn } from './core.ts';

export interface OperationDecided {
  readonly decision: AuthorizationDecision;
  readonly grantId?: string | undefined;
}

/**
 * Decides one request of an operation and records the decision before anything can follow from it.
 *
 * @throws AuditUnavailableError when the record could not be written; a use that was taken stays taken.
 */
export const decideOperation = (
  core: KernelCore,
  { resolution }: Held,
  context: AccessContext,
  request: AuthorizationRequest,
  { consume, operationId }: { readonly consume: boolean; readonly operationId?: string },
): Promise<OperationDecided> =>
  measure(
    core.spans,
    SPAN.AUTHORIZE,
    async () => {
      let decided: Decided;
      if (resolution.status === 'resolved') {
        const authority = compiledAuthority(core, resolution);
        const { installed, run, reportCeiling } = core.decider;
        decided = await run(authority.decide(request, { now: instantIn(context), consume, mode: 'execute', ...installed }));
        reportCeiling(decided, context, request);
      } else {
        decided = decidedWithoutAuthority(resolution);
      }
      const authorityHash = resolution.status === 'resolved' ? resolution.authority.snapshot.hash : undefined;
      await core.recordBefore(authorizationChecked(core.mark(context), { request, decided, consume, authorityHash, operationId }));
      return { decision: decided.decision, grantId: decided.decision.matchedGrantId };
    },
    ({ decision }, scope) => scope.set('reasonCode', decision.reasonCode),
  );
