/**
 * In which order test files begin: those that take minutes first, so that none of them is left to end alone. The others
 * follow with their projects mixed, so that files that compute run beside files that wait.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node';

const longest = [
  'test/sim/simulation.test.ts',
  'test/e2e/gangs/containers.test.ts',
  'test/e2e/gangs/namespaces.test.ts',
  'test/faults/gangs.test.ts',
  'test/faults/kill.test.ts',
  'test/e2e/checkpoints/progress.test.ts',
  'test/e2e/gangs/leases.test.ts',
  'packages/agent/src/rendezvous/preflight.integration.test.ts',
  'test/e2e/checkpoints/preemption.test.ts',
  'test/examples/torch.test.ts',
  'test/e2e/package.test.ts',
  'test/e2e/checkpoints/recovery.test.ts',
  'packages/coordinator/src/rpc/hostileAgent.test.ts',
  'test/e2e/logs.test.ts',
  'packages/agent/src/drivers/docker/dockerDriver.integration.test.ts',
  'test/e2e/gangs/starting.test.ts',
  'packages/coordinator/src/store/sqlite/killedRestore.test.ts',
  'packages/agent/src/drivers/process/conformanceCgroup2.test.ts',
  'packages/agent/src/drivers/process/conformanceFreezer.test.ts',
  'packages/agent/src/drivers/process/conformanceSession.test.ts',
  'packages/cli/src/process.test.ts',
  'packages/agent/src/gpus/nvml/sourceFailures.test.ts',
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const usual = await super.sort(files);
    const place = ({ moduleId }: TestSpecification) => {
      const index = longest.findIndex((path) => moduleId.endsWith(`/${path}`));
      return index === -1 ? longest.length : index;
    };
    const progress = evenly(usual.filter((file) => place(file) === longest.length));
    return usual.sort((a, b) => place(a) - place(b) || (progress.get(a) ?? 0) - (progress.get(b) ?? 0));
  }
}

/** How much of its project is done when each file begins, in [0, 1): in this order all projects end at the same time. */
function evenly(files: readonly TestSpecification[]): ReadonlyMap<TestSpecification, number> {
  const ofProjects = Map.groupBy(files, ({ project }) => project.name);
  return new Map(
    [...ofProjects.values()].flatMap((own) => own.map((file, index) => [file, index / own.length] as const)),
  );
}
