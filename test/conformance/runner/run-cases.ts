import { type Bag, type Case, type CaseFolder, UnknownToRunner, checkShape } from './case.ts';
import { type Violation, violations } from './expectations.ts';
import { type Observed, newStage, perform } from './perform.ts';

export interface Report {
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

/** Profiles that are not run, and why. Every other one has to pass. */
const NOT_RUN: Readonly<Record<string, string>> = {
  mcp: 'there is no tool bridge yet: tools are reached through the kernel and the services',
  'ext:replay': 'the embedded kernel keeps nothing, so it cannot know what it answered before; the services do, by their ledger',
  'ext:views': 'grants bound to a view of a resource are not offered',
};
const RUN = new Set([undefined, 'envelope', 'ext:live-revocation', 'ext:freshness']);

export const runCases = async ({ cases, broken }: CaseFolder): Promise<Report> => {
  const failed: Report['failed'][number][] = [];
  const skipped: Report['skipped'][number][] = [];
  const differences: Report['differences'][number][] = [];
  for (const one of cases) {
    const reason = one.profile === undefined ? undefined : NOT_RUN[one.profile];
    if (reason !== undefined) {
      skipped.push({ id: one.id, reason });
      continue;
    }
    const why = await failureOf(one, (difference) => differences.push({ id: one.id, ...difference }));
    if (why !== undefined) failed.push({ id: one.id, why });
  }
  const passed = cases.length - failed.length - skipped.length;
  return { cases: cases.length, passed, failed: [...broken, ...failed], skipped, differences };
};

type Difference = Omit<Report['differences'][number], 'id'>;

/** Why a case fails, in words, or nothing. */
export const failureOf = async (one: Case, differs: (difference: Difference) => void = () => undefined): Promise<string | undefined> => {
  try {
    checkShape(one);
    if (!RUN.has(one.profile)) throw new UnknownToRunner(`no profile is called ${String(one.profile)}`);
    const wrong = await violationsOf(one, differs);
    return wrong.length === 0 ? undefined : wrong.map(spoken).join('; ');
  } catch (error) {
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  }
};

const violationsOf = async ({ world, steps, expect }: Case, differs: (difference: Difference) => void): Promise<readonly Violation[]> => {
  const stage = newStage(world);
  const seen = new Map<string, Observed>();
  const wrong: Violation[] = [];
  for (const step of steps) {
    for (const [id, observed] of await perform(stage, step)) seen.set(id, observed);
    if (expect.every((wanted) => wanted.step !== step.id) && seen.get(step.id)?.received['thrown'] !== undefined)
      wrong.push({ step: step.id, field: 'throws', wanted: false, came: seen.get(step.id)?.received['thrown'] });
  }
  for (const { step, anyOf, ...fields } of expect) {
    const told = (field: string, others: unknown, ours: unknown): void => differs({ step, field, others, ours });
    if (anyOf === undefined) {
      wrong.push(...violations(fields, step, seen, stage, told));
      continue;
    }
    const common = Object.keys(fields).length === 0 ? [] : violations(fields, step, seen, stage, told);
    const alternatives = (anyOf as Bag[]).map((alternative) => violations(alternative, step, seen, stage, told));
    wrong.push(...common, ...(alternatives.some((found) => found.length === 0) ? [] : alternatives.flat()));
  }
  return wrong;
};

const spoken = ({ step, field, wanted, came }: Violation): string =>
  `${step}.${field}: wanted ${JSON.stringify(wanted)}, came ${JSON.stringify(came)}`.slice(0, 1_200);
