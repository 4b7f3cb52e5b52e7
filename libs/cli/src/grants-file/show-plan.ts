import { boundsOf, capabilitiesOf, stateOf } from '../grant-words.ts';
import { principalName } from '../principal-name.ts';
import { printable } from '../table.ts';
import { changesOf } from './apply-grants.ts';
import type { GrantsPlan, PlanStep } from './plan-grants.ts';

const SIGN = { keep: '=', add: '+', revoke: '-' } as const;
const WHY: Readonly<Record<string, string>> = {
  new: 'new',
  changed: 'changed',
  revoked: 'was revoked, and an id is never used twice',
  'not in the file': 'not in the file',
};

/** One step in one line. */
export const stepLine = (step: PlanStep, now: number): string => {
  const { grant } = step;
  const what = `${principalName(grant.issuer)} → ${principalName(grant.subject)}  ${capabilitiesOf(grant)}`;
  const bounds = boundsOf(grant);
  const parent = grant.parentGrantId === undefined ? '' : `  passes on ${grant.parentGrantId}`;
  const state = step.do === 'keep' && stateOf(grant, now) !== 'live' ? `  ${stateOf(grant, now)}` : '';
  const why = step.do === 'keep' ? '' : `  (${WHY[step.why] ?? step.why})`;
  return printable(`${SIGN[step.do]} ${grant.id}  ${what}${bounds === 'none' ? '' : `  ${bounds}`}${parent}${state}${why}`);
};

/** A plan for people: what is added and revoked, line by line, then what stays, then the count. */
export const planText = (plan: GrantsPlan, now: number): string => {
  const changes = changesOf(plan);
  const kept = plan.steps.filter((step) => step.do === 'keep');
  const lines = [...changes, ...kept].map((step) => stepLine(step, now));
  const others = plan.others === 0 ? '' : ` · ${plan.others} live ${plan.others === 1 ? 'grant' : 'grants'} of others' making left alone`;
  const added = changes.filter((step) => step.do === 'add').length;
  const count =
    changes.length === 0 ? `no change: ${kept.length} kept` : `${added} to add, ${changes.length - added} to revoke, ${kept.length} kept`;
  return `${[...lines, `${count}${others}`].join('\n')}\n`;
};

/** A plan for programs. */
export const planJson = (plan: GrantsPlan): unknown => ({
  file: plan.file,
  namespaceId: plan.namespaceId,
  changes: changesOf(plan).length,
  others: plan.others,
  steps: plan.steps.map(({ grant, ...step }) => ({
    do: step.do,
    ...(step.entry === undefined ? {} : { entry: step.entry }),
    ...(step.do === 'keep' ? {} : { why: step.why }),
    grant,
  })),
});
