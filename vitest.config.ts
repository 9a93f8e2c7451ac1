import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longestFirst.ts';
import { testPatienceMs } from './test/support/patience.ts';

const patient = {
  setupFiles: ['test/support/patientWaits.ts'],
  testTimeout: testPatienceMs,
  hookTimeout: testPatienceMs,
  // All projects run at the same time: while whole clusters wait for leases and timeouts, others compute. More workers than
  // two cores, because most test files wait most of the time.
  maxWorkers: 5,
  sequence: { groupOrder: 0 },
};

export default defineConfig({
  test: {
    // A process per file: tests open databases, change signals handlers and leave timers to their end.
    pool: 'forks',
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        test: {
          ...patient,
          name: 'unit',
          include: [
            'packages/*/src/**/*.test.ts',
            'test/{rules,support}/**/*.test.ts',
            'test/sim/checks/**/*.test.ts',
          ],
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
          globalSetup: ['test/support/currentBuild.ts'],
        },
      },
    ],
  },
});
