/**
 * Counts a vitest JSON report. A file that could not even be loaded has no tests in it and counts as one failure; a run that
 * failed without naming a failure (an unhandled rejection, a crash) does too.
 *
 * @param report The parsed report, or `undefined` when none was written.
 */
export const countReport = (report, exitCode) => {
  if (report === undefined) return { passed: 0, failed: 1, skipped: [], unloaded: [] };
  const files = report.testResults;
  const tests = files.flatMap((file) => file.assertionResults);
  const named = (status) => tests.filter((test) => status.includes(test.status));
  const unloaded = files
    .filter((file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'))
    .map((file) => file.name);
  const failed = named(['failed']).length + unloaded.length;
  return {
    passed: named(['passed']).length,
    failed: failed === 0 && exitCode !== 0 ? 1 : failed,
    skipped: named(['skipped', 'pending', 'todo', 'disabled']).map((test) => test.fullName),
    unloaded,
  };
};
