/** Sweeps for tests, by the API of a coordinator of their own, with trials that are begun and ended by hand. */
import { isJobId, type JobId } from '@muster/common/ids';
import type { SweepView } from '@muster/common/sweeps';
import type { TaskEnd } from '@muster/common/views';
import type { MusterApi } from '@muster/common/wire/client';
import { report } from '../commands/nodes.ts';
import type { TestCoordinator } from '../coordinatorFixture.ts';
import { aCaller, aNode, anExit, aReport } from '../modelFixture.ts';
import { startJob } from './jobFixture.ts';

export const aSweepFile = {
  name: 'tune',
  sampler: 'random',
  trials: 3,
  parallel: 2,
  objective: { metric: 'train_loss', goal: 'min' },
  parameters: { lr: { type: 'float', min: 0, max: 1 }, optimizer: ['adam', 'sgd'] },
  job: { command: ['train', '--lr={lr}', '--optimizer={optimizer}'] },
};

/** @param coordinatorNow that of the test which runs */
export function sweepActions(coordinatorNow: () => TestCoordinator) {
  let requests = 0;

  function create(change: object = {}, api: MusterApi = coordinatorNow().api): Promise<SweepView> {
    requests += 1;
    return api.createSweep({
      specJson: JSON.stringify({ ...aSweepFile, ...change }),
      requestId: `r${requests}`,
    });
  }

  async function trialsOf(id: string) {
    await coordinatorNow().sweeps.run();
    return coordinatorNow().api.listTrials(id);
  }

  async function finish(jobId: JobId, code: number, end: Partial<TaskEnd> = {}): Promise<void> {
    const task = { jobId, attempt: 1, nodeRank: 0 };
    const ended = aReport(task, { state: 'ended', exit: anExit({ exitCode: code, ...end }) });
    await coordinatorNow().loop.run(aCaller, (draft, nowMs) =>
      report(draft, aNode('node-1').name, [ended], () => null, nowMs),
    );
  }

  /** Runs a trial to its end. @param loss of its last line; null: it is not a finite number */
  async function endTrial(
    jobId: string,
    loss: number | null,
    exitCode = 0,
    others: Readonly<Record<string, number>> = {},
  ): Promise<void> {
    if (!isJobId(jobId)) throw new Error(`${jobId} is not a job`);
    if (coordinatorNow().state.jobs.get(jobId)?.state.kind === 'queued')
      await startJob(coordinatorNow(), jobId);
    const task = { jobId, attempt: 1, nodeRank: 0 };
    const { rowKeeping } = coordinatorNow();
    const values = loss === null ? { step: 7 } : { train_loss: loss, step: 7, ...others };
    const row = { position: 10, atMs: coordinatorNow().wallMs(), values, lossNotFinite: loss === null };
    await rowKeeping.rows.append(task, [row], 2 ** 20, coordinatorNow().wallMs());
    await rowKeeping.ended(task, 'complete');
    await finish(jobId, exitCode);
    await coordinatorNow().sweeps.run();
  }

  /** A line of the output of a running trial. */
  async function print(jobId: JobId, step: number, loss: number, epoch?: number): Promise<void> {
    const task = { jobId, attempt: 1, nodeRank: 0 };
    const atMs = coordinatorNow().wallMs();
    const values = { train_loss: loss, step, ...(epoch === undefined ? {} : { epoch }) };
    const row = { position: step, atMs, values, lossNotFinite: false };
    await coordinatorNow().rowKeeping.rows.append(task, [row], 2 ** 20, atMs);
    await coordinatorNow().sweeps.run();
  }

  return { create, trialsOf, finish, endTrial, print };
}
