import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // A process per file: tests open databases, change signals handlers and leave timers to their end.
    pool: 'forks',
    projects: [
      {
        test: {
          name: 'unit',
          include: ['packages/*/src/**/*.test.ts', 'test/{sim,rules,examples,support}/**/*.test.ts'],
          testTimeout: 20_000,
          hookTimeout: 20_000,
          maxWorkers: 2,
          sequence: { groupOrder: 0 },
        },
      },
      {
        test: {
          name: 'e2e',
          include: ['test/{e2e,faults}/**/*.test.ts'],
          globalSetup: ['test/support/currentBuild.ts'],
          // Whole clusters of processes: two at a time would only measure each other's load.
          fileParallelism: false,
          testTimeout: 120_000,
          hookTimeout: 120_000,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
