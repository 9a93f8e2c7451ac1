import type { Output } from '../io.ts';

/** The value as JSON: readable on a terminal, one line for programs. */
export function writeJson(output: Output, value: unknown): Promise<void> {
  return output.write(`${JSON.stringify(value, null, output.isTerminal ? 2 : 0)}\n`);
}
