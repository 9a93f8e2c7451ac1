/** Asks the programs that run tasks of this node whether they answer: its guard and its container engine. */
import type { HelperFact, HelperFacts } from '../health/helpers.ts';
import { engineState } from '../probes/engine.ts';

/** Time that a helper has for a question that needs no work. */
const answerMs = 5_000;

/** Asks a guard for a greeting, and starts none. */
export type GuardProbe = (deadlineMs: number) => Promise<HelperFact>;

/**
 * Takes no longer than 5 s.
 * @param engineSocket of the Docker Engine API
 */
export async function probeHelpers(probeGuard: GuardProbe, engineSocket: string): Promise<HelperFacts> {
  const [guard, engine] = await Promise.all([probeGuard(answerMs), engineState(engineSocket, answerMs)]);
  return { guard, engine: { state: engine, detail: engineSocket } };
}
