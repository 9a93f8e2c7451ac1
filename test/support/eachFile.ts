/** Runs before each test file of every project. */
import { afterAll, vi } from 'vitest';
import { patienceMs } from './patience.ts';
import { releaseAll } from './services.ts';

const { waitFor } = vi;

/** `vi.waitFor` gives up after one second unless it is told otherwise, which a busy machine needs now and then. */
vi.waitFor = (callback, options) => {
  const { timeout = patienceMs, ...others } =
    typeof options === 'number' ? { timeout: options } : (options ?? {});
  return waitFor(callback, { ...others, timeout });
};

afterAll(releaseAll);
