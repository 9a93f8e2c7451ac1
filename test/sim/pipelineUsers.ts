/** People who run pipelines, stop some of the runs, and set triggers. */
import { createHmac } from 'node:crypto';
import type { Client } from './client.ts';
import type { DataPlace } from './dataPlace.ts';
import type { History } from './history.ts';
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

/** Wall clock at the start of the world. */
const epochMs = 1_700_000_000_000;
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
  readonly history: History;
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
      const created = await client.callUntilAnswered<Created>('CreateTrigger', triggerRequest(trigger));
      if (created?.secret !== undefined) void deliver(parts, trigger.name, created.secret, untilMs);
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

interface Created {
  /** Of one by webhook. */
  readonly secret?: string;
}

/** Somebody with the secret of a trigger sends deliveries until `untilMs`, some of them again. */
async function deliver(
  { client, random, timeline, workload, history }: PipelineUserParts,
  trigger: string,
  secret: string,
  untilMs: number,
): Promise<void> {
  workload.callsUnderway += 1;
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  for (let count = 1; timeline.nowMs < untilMs; count += 1) {
    await client.pause(random.waitMs(meanArrivalMs));
    const id = `${trigger}-${random.chance(0.3) ? Math.max(1, count - 1) : count}`;
    const body = JSON.stringify({ id });
    const timestamp = String(Math.floor((epochMs + timeline.nowMs) / 1_000));
    const mac = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
    const sent = { trigger, id, timestamp, signature: `v1,${mac}`, body: Buffer.from(body), peer: null };
    const answer = await client.deliver(sent);
    if (answer !== null) history.add({ kind: 'deliveryAnswered', trigger, id, run: answer.run });
  }
  workload.callsUnderway -= 1;
}

/** Files come until `untilMs`; now and then the directory is away for a while. */
export async function bringData(
  { client, random, timeline, workload, data }: PipelineUserParts,
  untilMs: number,
): Promise<void> {
  workload.callsUnderway += 1;
  while (timeline.nowMs < untilMs) {
    await client.pause(random.waitMs(meanArrivalMs));
    const isAway = random.chance(0.3);
    if (isAway) data.setAway(true);
    if (isAway) await client.pause(random.between(5_000, 15_000));
    if (isAway) data.setAway(false);
    data.add(random.between(1, 3));
  }
  workload.callsUnderway -= 1;
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
