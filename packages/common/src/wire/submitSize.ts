/** What a submit is about to make, for a client that only has its text. */
import { arraySize, parseArray } from '../spec/array.ts';
import { isMapping } from '../spec/path.ts';

/** How many jobs a spec asks for, wrong or right: what it is allowed time for. */
export function arraySizeIn(specJson: string): number {
  if (!specJson.includes('"array"')) return 0;
  try {
    const spec: unknown = JSON.parse(specJson);
    const written = isMapping(spec) ? spec['array'] : undefined;
    const reading = typeof written === 'string' || typeof written === 'number' ? parseArray(written) : null;
    return reading !== null && 'array' in reading ? arraySize(reading.array) : 0;
  } catch {
    return 0;
  }
}
