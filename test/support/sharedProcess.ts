/**
 * Runs before each test file. The files of the unit tests share processes, so a file that leaves the process changed changes
 * what later files see: it fails itself, and does not make another one fail now and then.
 */
import { afterAll, beforeAll, expect, vi } from 'vitest';

const watchedEvents = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2', 'exit', 'beforeExit', 'message'];

/** Where the file runs under, but for what the test runner itself keeps there. */
function stateOfProcess() {
  return {
    directory: process.cwd(),
    environment: Object.fromEntries(
      Object.entries(process.env).filter(([name]) => !name.startsWith('VITEST')),
    ),
    exitCode: process.exitCode,
    fileModeMask: process.umask(),
    hasFakeTimers: vi.isFakeTimers(),
    listeners: watchedEvents.map((event) => `${event}: ${process.listenerCount(event)}`),
    replaceable: [Date, Math.random, console.log, fetch, performance.now, process.stdout.write, setTimeout],
  };
}

let before: ReturnType<typeof stateOfProcess>;

beforeAll(() => {
  before = stateOfProcess();
});

afterAll(() => {
  expect(stateOfProcess(), 'the state of the process that this test file leaves to later ones').toEqual(
    before,
  );
});
