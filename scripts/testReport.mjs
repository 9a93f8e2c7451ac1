// From vitest's JSON report to the three numbers in the last line of `npm test`.

/**
 * @typedef {{ status: string, assertionResults: readonly { status: string }[] }} FileReport
 * @typedef {object} Report
 * @property {number} numPassedTests
 * @property {number} numFailedTests
 * @property {number} numPendingTests
 * @property {number} numTodoTests
 * @property {readonly FileReport[]} testResults
 */

/**
 * A file that could not be loaded, or whose set-up failed, has no failed test in it and still counts as one; so does a
 * run that failed in a way that the report does not show (an error nobody caught).
 * @param {Report} report
 * @param {number} exitCode of vitest
 */
export function countTests(report, exitCode) {
  const brokenFiles = report.testResults.filter(
    (file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
  ).length;
  const failed = report.numFailedTests + brokenFiles;
  return {
    passed: report.numPassedTests,
    failed: exitCode !== 0 ? Math.max(failed, 1) : failed,
    skipped: report.numPendingTests + report.numTodoTests,
  };
}
