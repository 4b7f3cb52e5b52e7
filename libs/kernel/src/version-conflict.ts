/** Somebody changed the thing since the version that a command was written against. */
export interface VersionConflict {
  readonly code: 'version_conflict';
  readonly found: number;
}

/** @param expected The version a command states; one that states none applies to whatever is there. */
export const versionConflict = (expected: number | undefined, found: number): VersionConflict | undefined =>
  expected === undefined || expected === found ? undefined : { code: 'version_conflict', found };
