/** How often a fault is tried: `MUSTER_TEST_TRIALS=full` asks for all of them, which takes hours; else it is a tenth. */

/** @param full as many as a release is judged by */
export function trialsOf(full: number): number {
  return process.env.MUSTER_TEST_TRIALS === 'full' ? full : Math.ceil(full / 10);
}
