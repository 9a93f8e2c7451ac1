/**
 * How long tests wait. A wait ends when the state is there, so its limit only tells a hang from a machine that is slow or
 * busy with something else; a limit near to what a wait usually takes fails on such a machine and finds nothing.
 */

/** Of one wait, in milliseconds. */
export const patienceMs = 120_000;

/**
 * Of one test, in milliseconds: the failed wait, with the state that it saw last, is reported before the test is cut off. The
 * longest tests are many waits, and take ten minutes at a load of 70.
 */
export const testPatienceMs: number = 10 * patienceMs;
