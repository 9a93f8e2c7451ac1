/** The part of the typed client that is about advice. */
import { adviceFromWire } from './codec.ts';
import type { UnaryCall } from './unaryCalls.ts';

export interface AdviceApi {
  /**
   * @param contextJson `task_type` and `training_context` as JSON
   * @returns the answer of that question, by the schemas of `packages/advice`
   */
  advise(contextJson: string): Promise<Readonly<Record<string, unknown>>>;
}

export function adviceClient(call: UnaryCall): AdviceApi {
  return { advise: async (contextJson) => adviceFromWire(await call('Advise', { contextJson })) };
}
