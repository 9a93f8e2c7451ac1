/** Runs of pipelines for tests: started and looked at by the API, with steps that are begun and ended by hand. */
import { MusterError } from '@muster/common/errors';
import { isJobId, type JobId } from '@muster/common/ids';
import type { PipelineRunView } from '@muster/common/pipelines';
import { expect } from 'vitest';
import { report } from '../commands/nodes.ts';
import type { TestCoordinator } from '../coordinatorFixture.ts';
import { aCaller, aNode, anExit, aReport } from '../modelFixture.ts';
import { startJob } from './jobFixture.ts';

/** A pipeline with a step for each kind of thing that a run does. */
export const pipelineFile = {
  name: 'vision',
  artifacts: '/shared',
  params: { lr: 0.1, skip: false },
  steps: {
    prepare: { run: 'prepare', outputs: { data: { type: 'directory' } }, cache: true },
    train: { job: { command: `train \${params.lr}` }, inputs: { data: 'prepare.data' }, cache: true },
    report: { run: 'report', after: 'train', when: '!skip' },
  },
};

let requests = 0;

/** @param coordinatorNow that of the test which runs */
export function pipelineActions(coordinatorNow: () => TestCoordinator) {
  /** Starts a run of that pipeline. @param change of its file @param request further fields of the call */
  async function start(change: object = {}, request: object = {}): Promise<string> {
    requests += 1;
    const specJson = JSON.stringify({ ...pipelineFile, ...change });
    return (await coordinatorNow().api.runPipeline({ specJson, requestId: `r${requests}`, ...request })).id;
  }

  /** The run after a pass over all. */
  async function look(id: string): Promise<PipelineRunView> {
    await coordinatorNow().pipelines.run();
    return coordinatorNow().api.getPipeline(id);
  }

  async function states(id: string): Promise<readonly string[]> {
    return (await look(id)).steps.map(({ step, index, state }) => `${step}.${index} ${state}`);
  }

  /** The job of a step that runs. */
  async function jobOf(id: string, name: string, index = 0): Promise<JobId> {
    const { steps } = await look(id);
    const jobId = steps.find((each) => each.step === name && each.index === index)?.jobId ?? '';
    if (!isJobId(jobId)) throw new Error(`${name} has no job`);
    return jobId;
  }

  /** Runs a step to its end. @param text what its job prints */
  async function endStepBy(
    id: string,
    name: string,
    { exitCode = 0, text = '', index = 0, logBytes = null as number | null } = {},
  ): Promise<void> {
    const jobId = await jobOf(id, name, index);
    const coordinator = coordinatorNow();
    coordinator.clock.nowMs += 1_000;
    if (coordinator.state.jobs.get(jobId)?.state.kind === 'queued') await startJob(coordinator, jobId);
    const task = { jobId, attempt: 1, nodeRank: 0 };
    if (text !== '') await coordinator.logs.append(task, 0, Buffer.from(text));
    const ended = aReport(task, {
      state: 'ended',
      exit: anExit({ exitCode, logBytes: logBytes ?? text.length }),
    });
    await coordinator.loop.run(aCaller, (draft, nowMs) =>
      report(draft, aNode('node-1').name, [ended], () => null, nowMs),
    );
    await coordinator.pipelines.run();
  }

  return { start, look, states, jobOf, endStepBy };
}

/** Why work was refused: the code and the message of its error. */
export async function refusalOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => expect.fail('it was not refused'),
    (reason: unknown) => reason,
  );
  return error instanceof MusterError ? `${error.code}: ${error.message}` : String(error);
}
