/** `error`: something does not work. `warning`: something will not, or not as it should. `note`: so it is, and it is good to know. */
export type Severity = 'error' | 'warning' | 'note';

/** One thing that the doctor found. */
export interface Finding {
  /** Stable, for programs. */
  readonly code: string;
  readonly severity: Severity;
  readonly what: string;
  /** What to do about it. */
  readonly remedy: string;
}

const finding =
  (severity: Severity) =>
  (code: string, what: string, remedy: string): Finding => ({ code, severity, what, remedy });

export const error = finding('error');
export const warning = finding('warning');
export const note = finding('note');
