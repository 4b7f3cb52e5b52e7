import { type Bag, type Case, type CaseFolder, UnknownToRunner, checkShape } from './case.ts';
import { type Violation, violations } from './expectations.ts';
import type { Observed } from './observed.ts';
import { type Staged, type Target, embedded } from './target.ts';

export interface Report {
  readonly target: Target['name'];
  /** All cases found, whether run or not. */
  readonly cases: number;
  readonly passed: number;
  readonly failed: readonly { readonly id: string; readonly why: string }[];
  readonly skipped: readonly { readonly id: string; readonly reason: string }[];
  /** Codes that differ from what others use, where no specification fixes one: told, and not graded. */
  readonly differences: readonly {
    readonly id: string;
    readonly step: string;
    readonly field: string;
    readonly others: unknown;
    readonly ours: unknown;
  }[];
}

const PROFILES = new Set([undefined, 'envelope', 'mcp', 'ext:live-revocation', 'ext:freshness', 'ext:replay', 'ext:views']);

export const runCases = async ({ cases, broken }: CaseFolder, target: Target = embedded): Promise<Report> => {
  const failed: Report['failed'][number][] = [];
  const skipped: Report['skipped'][number][] = [];
  const differences: Report['differences'][number][] = [];
  for (const one of cases) {
    // Whatever is run elsewhere, or cannot be, has to be understood: a case with something unknown in it is never left out.
    const here = target === embedded || embedded.cannotRun(one) !== undefined ? undefined : await failureOf(one);
    if (here !== undefined) {
      failed.push({ id: one.id, why: `in process: ${here}` });
      continue;
    }
    const reason = target.cannotRun(one);
    if (reason !== undefined) {
      skipped.push({ id: one.id, reason });
      continue;
    }
    const otherwise = target.byDesign[one.id];
    const told = (difference: Difference): void => {
      if (otherwise === undefined) differences.push({ id: one.id, ...difference });
    };
    const why = await failureOf(one, told, target);
    if (otherwise !== undefined && why !== undefined) skipped.push({ id: one.id, reason: otherwise });
    else if (otherwise !== undefined) failed.push({ id: one.id, why: 'it is named as answered otherwise here, and it is not' });
    else if (why !== undefined) failed.push({ id: one.id, why });
  }
  const passed = cases.length - failed.length - skipped.length;
  return { target: target.name, cases: cases.length, passed, failed: [...broken, ...failed], skipped, differences };
};

type Difference = Omit<Report['differences'][number], 'id'>;

/** Why a case fails, in words, or nothing. */
export const failureOf = async (
  one: Case,
  differs: (difference: Difference) => void = () => undefined,
  target: Target = embedded,
): Promise<string | undefined> => {
  try {
    checkShape(one);
    if (!PROFILES.has(one.profile)) throw new UnknownToRunner(`no profile is called ${String(one.profile)}`);
    const wrong = await violationsOf(one, await target.stage(one), differs);
    return wrong.length === 0 ? undefined : wrong.map(spoken).join('; ');
  } catch (error) {
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  }
};

const violationsOf = async (
  { steps, expect }: Case,
  stage: Staged,
  differs: (difference: Difference) => void,
): Promise<readonly Violation[]> => {
  const seen = new Map<string, Observed>();
  const wrong: Violation[] = [];
  for (const step of steps) {
    for (const [id, observed] of await stage.perform(step)) seen.set(id, observed);
    if (expect.every((wanted) => wanted.step !== step.id) && seen.get(step.id)?.received['thrown'] !== undefined)
      wrong.push({ step: step.id, field: 'throws', wanted: false, came: seen.get(step.id)?.received['thrown'] });
  }
  for (const { step, anyOf, ...fields } of expect) {
    const told = (field: string, others: unknown, ours: unknown): void => differs({ step, field, others, ours });
    if (anyOf === undefined) {
      wrong.push(...violations(fields, step, seen, stage.counter, told));
      continue;
    }
    const common = Object.keys(fields).length === 0 ? [] : violations(fields, step, seen, stage.counter, told);
    const alternatives = (anyOf as Bag[]).map((alternative) => violations(alternative, step, seen, stage.counter, told));
    wrong.push(...common, ...(alternatives.some((found) => found.length === 0) ? [] : alternatives.flat()));
  }
  return [...wrong, ...(stage.differing?.() ?? [])];
};

const spoken = ({ step, field, wanted, came }: Violation): string =>
  `${step}.${field}: wanted ${JSON.stringify(wanted)}, came ${JSON.stringify(came)}`.slice(0, 1_200);
