/** Runs before each test file of every project. */
import { afterAll, vi } from 'vitest';
import { patienceMs } from './patience.ts';
import { releaseAll } from './services.ts';

const { waitFor } = vi;

/**
 * `vi.waitFor` gives up after one second unless it is told otherwise, which a busy machine needs now and then, and looks 20
 * times a second, for which most tests would wait longer than for what they wait for.
 */
vi.waitFor = (callback, options) => {
  const given = typeof options === 'number' ? { timeout: options } : options;
  return waitFor(callback, { timeout: patienceMs, interval: 10, ...given });
};

afterAll(releaseAll);
