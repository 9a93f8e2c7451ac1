/** In which order test files begin: those that take minutes first, so that none of them is left to end alone. */
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const longest = [
  'test/sim/simulation.test.ts',
  'packages/agent/src/drivers/process/conformance.test.ts',
  // Its leases are short, so it ends before the one with the many nodes begins.
  'test/faults/kill.test.ts',
  'test/e2e/gangs/containers.test.ts',
  'test/e2e/gangs/namespaces.test.ts',
  'test/faults/gangs.test.ts',
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const index = longest.findIndex((path) => moduleId.endsWith(`/${path}`));
      return index === -1 ? longest.length : index;
    };
    return (await super.sort(files)).sort((a, b) => place(a) - place(b));
  }
}
