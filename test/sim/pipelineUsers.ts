/** People who run pipelines, stop some of the runs, and set triggers. */
import type { Client } from './client.ts';
import type { DataPlace } from './dataPlace.ts';
import {
  composePipeline,
  composeTrigger,
  type PipelineFile,
  type TriggerFile,
  triggerRequest,
} from './pipelineFiles.ts';
import type { Random } from './random.ts';
import type { Timeline } from './timeline.ts';
import type { Workload } from './workload.ts';

const meanPauseMs = 4_000;
const meanArrivalMs = 8_000;
/** Of the quiet phase, in which those that are set to times must still fire. */
const lastMinuteMs = 65_000;

export interface PipelineUserParts {
  readonly client: Client;
  readonly random: Random;
  readonly timeline: Timeline;
  readonly workload: Workload;
  readonly data: DataPlace;
  /** GPUs of each machine. */
  readonly gpus: readonly number[];
  /** What was written, for the checks. */
  readonly pipelines: Map<string, PipelineFile>;
  readonly triggers: Map<string, TriggerFile>;
}

/** They act until `untilMs`; a minute later they delete the triggers that would fire for ever. */
export async function usePipelines(parts: PipelineUserParts, untilMs: number): Promise<void> {
  const { client, random, timeline, workload, triggers } = parts;
  const files = [compose(parts, 'pipe-1'), compose(parts, 'pipe-2')];
  workload.callsUnderway += 1;
  for (let count = 1; timeline.nowMs < untilMs; count += 1) {
    const what = random.next();
    if (what < 0.4) await run(client, random.pick(files), `run-${count}`, random.chance(0.2));
    else if (what < 0.65 && triggers.size < 3) {
      const trigger = composeTrigger(random, `trigger-${count}`, random.pick(files), [...triggers.values()]);
      triggers.set(trigger.name, trigger);
      const created = await client.callUntilAnswered('CreateTrigger', triggerRequest(trigger));
      // What is away cannot be watched.
      if (created === null && trigger.on !== 'data') throw new Error(`${trigger.name} was refused`);
      if (created === null) triggers.delete(trigger.name);
    } else if (what < 0.75) await stopOne(client, random);
    else if (what < 0.78 && triggers.size > 0)
      await client.callUntilAnswered('DeleteTrigger', { name: random.pick([...triggers.keys()]) });
    else if (triggers.size > 0) {
      const name = random.pick([...triggers.keys()]);
      await client.callUntilAnswered(random.chance(0.6) ? 'PauseTrigger' : 'ResumeTrigger', { name });
    }
    await client.pause(random.waitMs(meanPauseMs));
  }
  // One that stays paused would never start what waits.
  for (const name of triggers.keys()) await client.callUntilAnswered('ResumeTrigger', { name });
  const timed = [...triggers.values()].filter(({ on }) => on === 'cron');
  if (timed.length > 0) await client.pause(Math.max(0, untilMs - timeline.nowMs) + lastMinuteMs);
  for (const { name } of timed) await client.callUntilAnswered('DeleteTrigger', { name });
  workload.callsUnderway -= 1;
}

/** Files come until `untilMs`; now and then the directory is away for a while. */
export async function bringData(
  { client, random, timeline, data }: Pick<PipelineUserParts, 'client' | 'random' | 'timeline' | 'data'>,
  untilMs: number,
): Promise<void> {
  while (timeline.nowMs < untilMs) {
    await client.pause(random.waitMs(meanArrivalMs));
    const isAway = random.chance(0.3);
    if (isAway) data.setAway(true);
    if (isAway) await client.pause(random.between(5_000, 15_000));
    if (isAway) data.setAway(false);
    data.add(random.between(1, 3));
  }
}

function compose({ random, workload, gpus, pipelines }: PipelineUserParts, name: string): PipelineFile {
  const file = composePipeline(random, name, Math.min(...gpus));
  pipelines.set(name, file);
  for (const submission of file.submissions) workload.submissions.set(submission.name, submission);
  return file;
}

async function run(
  client: Client,
  { specJson }: PipelineFile,
  requestId: string,
  noCache: boolean,
): Promise<void> {
  const request = { specJson, paramsJson: '', requestId, dryRun: false, noCache };
  if ((await client.callUntilAnswered('RunPipeline', request)) === null)
    throw new Error(`${requestId} was refused`);
}

async function stopOne(client: Client, random: Random): Promise<void> {
  const answer = await client.callUntilAnswered<{ runs: { id: string }[] }>('ListPipelines', {
    active: true,
  });
  const runs = answer?.runs ?? [];
  if (runs.length > 0)
    await client.callUntilAnswered('StopPipeline', { run: random.pick(runs).id, reason: '' });
}
