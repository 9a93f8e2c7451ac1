/**
 * How often a fault is tried. `npm test` tries a few; `npm run test:faults` sets `MUSTER_TEST_TRIALS=full` and tries all, which
 * takes hours.
 */
export const triesAll: boolean = process.env.MUSTER_TEST_TRIALS === 'full';

/**
 * @param full as many as a release is judged by
 * @param usual as many as `npm test` tries; a tenth of all unless it is given
 */
export function trialsOf(full: number, usual: number = Math.ceil(full / 10)): number {
  return triesAll ? full : usual;
}
