import type { ContainmentMode } from '../../guard/containment.ts';
import { describeDriver } from '../conformance.ts';
import { canContain, GuardFixture } from './guardFixture.ts';

/** Each way to hold a task's processes together keeps the same promises. Each has a file, because they mostly wait. */
export function describeProcessDriver(containment: ContainmentMode): void {
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
