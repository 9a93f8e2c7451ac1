import { defaultExclude, defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longestFirst.ts';
import { memoryDirectory } from './test/support/memoryDirectory.ts';
import { patienceMs, testPatienceMs } from './test/support/patience.ts';
import { triesAll } from './test/support/trials.ts';

/** Parts of the product with the real service behind them: Docker, NATS, Prometheus, PyTorch. */
const integrationTests = 'packages/*/src/**/*.integration.test.ts';

const patient = {
  setupFiles: ['test/support/eachFile.ts'],
  testTimeout: testPatienceMs,
  hookTimeout: testPatienceMs,
  expect: { poll: { timeout: patienceMs } },
  // All projects run at the same time: while whole clusters wait for leases and timeouts, others compute. More workers than
  // two cores, because most test files wait most of the time.
  maxWorkers: 5,
  sequence: { groupOrder: 0 },
};

const inMemory = memoryDirectory();

/** Each file makes releases of several versions, and boots machines with them. */
const longTrials = 'test/e2e/machines/**';

export default defineConfig({
  test: {
    pool: 'forks',
    // Node loads the sources as it does in production, and keeps them compiled: half of the time of the unit tests was Vite's loader.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    sequence: { sequencer: LongestFirst },
    // A process that is shared by many files writes what it has compiled when it ends, which takes a while on a busy machine.
    teardownTimeout: patienceMs,
    projects: [
      {
        test: {
          ...patient,
          name: 'unit',
          // Files share processes: starting one and loading the product takes longer than most files.
          isolate: false,
          // With one process for each core and more, V8's threads for collecting garbage only add work. And as much memory as a
          // process ends with is given to it at once: while V8 lets a heap grow step by step, it walks all of it at each step.
          execArgv: ['--single-threaded-gc', '--initial-old-space-size=512'],
          setupFiles: [...patient.setupFiles, 'test/support/sharedProcess.ts'],
          globalSetup: ['test/support/compiledOnce.ts'],
          ...(inMemory === null ? {} : { env: { TMPDIR: inMemory } }),
          include: [
            'packages/*/src/**/*.test.ts',
            'test/{rules,support}/**/*.test.ts',
            'test/sim/checks/**/*.test.ts',
          ],
          exclude: [...defaultExclude, integrationTests],
        },
      },
      {
        test: {
          ...patient,
          name: 'integration',
          include: [integrationTests],
        },
      },
      {
        test: {
          ...patient,
          name: 'simulation',
          include: ['test/sim/*.test.ts'],
        },
      },
      {
        test: {
          ...patient,
          name: 'e2e',
          include: ['test/{e2e,faults,examples}/**/*.test.ts'],
          // The long test of node add boots four machines and takes three to five minutes; `nodeAddOnce.test.ts` is in every run.
          exclude: [...defaultExclude, ...(triesAll ? [] : ['test/e2e/nodeAdd.test.ts', longTrials])],
          globalSetup: ['test/support/currentBuild.ts'],
        },
      },
    ],
  },
});
