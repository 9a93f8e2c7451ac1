import { describeDriver } from '../conformance.ts';
import { canContain, GuardFixture } from './guardFixture.ts';

// Each way to hold a task's processes together has to keep the same promises.
for (const containment of ['cgroup2', 'freezer', 'session'] as const) {
  describeDriver(
    `process (${containment})`,
    async () => {
      const guard = new GuardFixture({ containment });
      return {
        driver: async () => guard.driver(),
        makeLaunch: (launch) => launch,
        guard,
        cleanup: () => guard.cleanup(),
      };
    },
    canContain(containment) ? null : 'needs control groups of this kind that we may make; try as root',
  );
}
