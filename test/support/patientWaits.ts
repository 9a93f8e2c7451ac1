/** Runs before each test file: `vi.waitFor` gives up after one second unless it is told otherwise, which a busy machine needs now and then. */
import { vi } from 'vitest';
import { patienceMs } from './patience.ts';

const { waitFor } = vi;

vi.waitFor = (callback, options) => {
  const { timeout = patienceMs, ...others } =
    typeof options === 'number' ? { timeout: options } : (options ?? {});
  return waitFor(callback, { ...others, timeout });
};
