/** What must hold after a run, with what contradicts it. */
export interface Finding {
  readonly rule: string;
  readonly contradictions: readonly string[];
}

const SHOWN_MAX = 10;

export const allHold = (findings: readonly Finding[]): boolean => findings.every(({ contradictions }) => contradictions.length === 0);

/** A line for each finding, and what contradicts it below, as far as anybody would read. */
export const findingLines = (findings: readonly Finding[]): readonly string[] =>
  findings.flatMap(({ rule, contradictions }) => [
    `${contradictions.length === 0 ? 'ok  ' : 'FAIL'} ${rule}`,
    ...contradictions.slice(0, SHOWN_MAX).map((contradiction) => `       ${contradiction}`),
    ...(contradictions.length > SHOWN_MAX ? [`       … ${contradictions.length} in all`] : []),
  ]);
