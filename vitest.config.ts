import { defineConfig } from 'vitest/config';
import { LongestFirst } from './test/support/longestFirst.ts';
import { testPatienceMs } from './test/support/patience.ts';

const patient = {
  setupFiles: ['test/support/patientWaits.ts'],
  testTimeout: testPatienceMs,
  hookTimeout: testPatienceMs,
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
          include: ['packages/*/src/**/*.test.ts', 'test/{sim,rules,examples,support}/**/*.test.ts'],
          maxWorkers: 3,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          ...patient,
          name: 'e2e',
          include: ['test/{e2e,faults}/**/*.test.ts'],
          globalSetup: ['test/support/currentBuild.ts'],
          // Whole clusters of processes, which wait for leases, timeouts and programs most of the time.
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
