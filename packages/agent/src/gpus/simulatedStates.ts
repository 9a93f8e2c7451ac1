/**
 * The file by which a test, or somebody who tries Muster out, makes simulated GPUs do what real ones do when a training
 * hangs: `simulated-gpus` in the agent's data directory, read at every sample. A line is a state for all GPUs, or the index
 * of one and its state:
 *
 *     pinned
 *     1 idle
 *
 * Nobody reads it where GPUs are real.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type SimulatedState, simulatedStates } from './simulated.ts';

const fileName = 'simulated-gpus';
/** As many as can be simulated. */
const gpusMax = 64;

/** @returns by index; empty: there is no such file. What is not understood in it says nothing. */
export function readSimulatedStates(dataDir: string): ReadonlyMap<number, SimulatedState> {
  try {
    return statesIn(readFileSync(join(dataDir, fileName), 'utf8'));
  } catch {
    return new Map();
  }
}

function statesIn(text: string): ReadonlyMap<number, SimulatedState> {
  const states = new Map<number, SimulatedState>();
  for (const line of text.split('\n')) {
    const [, index, word] = /^(?:(\d{1,2}) )?([a-z]+)$/.exec(line.trim()) ?? [];
    const state = simulatedStates.find((each) => each === word);
    if (state === undefined) continue;
    if (index !== undefined) states.set(Number(index), state);
    else for (let gpu = 0; gpu < gpusMax; gpu += 1) states.set(gpu, state);
  }
  return states;
}
