import { type AuditEvent, type AuthorityRecompute, type Recomputed, timestampOf } from '@sharedos/contracts';
import fc from 'fast-check';
import { type World, admin, alice, authorizerWorld, bob, carol, contextAt, settled } from '../authorizer.fixture.ts';
import { LogHistory } from './log-history.ts';
import type { DecisionRule } from './recompute-decision.ts';
import { recomputeDecisions } from './recompute-decisions.ts';
import { setPolicy } from '../changes/set-policy.ts';
import { setSettings } from '../changes/set-settings.ts';

/** Recorded decisions of one question. */
const PAGE = 500;

/** Has decisions computed again as the service does, page by page from the log alone. */
export const recomputed = async (
  world: World,
  decisions: readonly AuditEvent[],
  more: Partial<AuthorityRecompute> = {},
  rule?: DecisionRule,
) => {
  const history = new LogHistory(world.store);
  const answers: Recomputed[] = [];
  const ask = recomputeDecisions(world.ports, history, rule);
  for (let from = 0; from < decisions.length; from += PAGE) {
    const answer = await ask({ decisions: decisions.slice(from, from + PAGE), ...more }, world.delivery('authority.recompute'));
    if (!answer.ok) throw new Error(answer.error.message);
    answers.push(...answer.value.answers);
  }
  await history.close();
  return answers;
};
/** A life of a namespace: grants come, are passed on, run out and are revoked; policy and settings change; and calls are decided all the while. */
export const livedThrough = async (
  seed: number,
  decisions: number,
): Promise<{ readonly world: World; readonly recorded: readonly AuditEvent[] }> => {
  const world = await authorizerWorld({ deadlineMs: 5_000 });
  const random = fc.sample(fc.infiniteStream(fc.nat(2 ** 30)), { seed, numRuns: 1 })[0] as Iterator<number>;
  const upTo = (count: number): number => (random.next().value as number) % count;
  const recorded: AuditEvent[] = [];
  const grants: string[] = [];
  const callsMax = Math.max(12, Math.floor(decisions / 500));
  const administer = { policy: setPolicy(world.ports, world.turns), settings: setSettings(world.ports, world.turns) };
  for (let step = 0; recorded.length < decisions; step += 1) {
    world.clock.advance(upTo(90_000));
    const id = `g-${step}`;
    const kind = upTo(12);
    const now = world.clock.now();
    if (kind < 3) {
      const constraints = {
        ...(upTo(3) === 0 ? { maxUses: 1 + upTo(4) } : {}),
        ...(upTo(2) === 0 ? { expiresAt: timestampOf(now + 1 + upTo(600_000)) } : {}),
        ...(upTo(4) === 0 ? { purposes: [upTo(2) === 0 ? 'p1' : 'p2'] } : {}),
        ...(upTo(3) === 0 ? { delegationDepth: 2 } : {}),
      };
      if ((await world.issue(id, constraints, upTo(3) === 0 ? { to: carol } : {})).ok) grants.push(id);
    } else if (kind === 3 && grants.length > 0) {
      const parent = grants[upTo(grants.length)] as string;
      if ((await world.derive(parent, id, { commandId: `c-${step}` })).ok) grants.push(id);
    } else if (kind === 4 && grants.length > 0) await world.revoke(grants[upTo(grants.length)] as string);
    else if (kind === 5) {
      const rules = upTo(2) === 0 ? [] : [{ id: 'no-b', effect: 'forbid' as const, namespaces: ['files'], path: ['Work', 'b'] }];
      const document = { language: 'sharedos.rules/1' as const, rules };
      await administer.policy({ commandId: `p-${step}`, document }, world.delivery('policy.set', admin));
    } else if (kind === 6) {
      const settings = { liveRevocation: upTo(2) === 0, sharedBudgets: upTo(2) === 0 };
      await administer.settings({ commandId: `s-${step}`, settings }, world.delivery('settings.set', admin));
    } else {
      const isCarols = upTo(3) === 0;
      const context = contextAt(timestampOf(now), isCarols ? { actor: carol, authority: upTo(2) === 0 ? alice : bob } : {});
      const { token } = await world.opened({ context });
      const calls = 1 + upTo(callsMax);
      for (let call = 0; call < calls; call += 1) {
        world.clock.advance(upTo(Math.floor(60_000 / callsMax)));
        if (upTo(20) === 0 && grants.length > 0) await world.revoke(grants[upTo(grants.length)] as string);
        const path = [['Work', 'a'], ['Work', 'b'], ['Work', 'Notes'], ['Elsewhere']][upTo(4)] as string[];
        const request = { resource: { namespace: 'files', path }, action: upTo(8) === 0 ? 'write' : 'read' };
        const operation = `op-${step}-${call}`;
        const question =
          upTo(2) === 0
            ? ({ kind: 'authorize', request, consume: upTo(2) === 0, operation } as const)
            : ({
                kind: 'tool',
                ceiling: { resource: { namespace: 'files', path: upTo(3) === 0 ? ['Nowhere'] : [] }, action: 'read' },
                exact: { requirement: request },
                operation,
                operationId: operation,
              } as const);
        const verdict = await world.verdict(token, question, { ...context, now: timestampOf(world.clock.now()) });
        recorded.push(...verdict.audit);
      }
    }
    await settled();
  }
  return { world, recorded };
};
