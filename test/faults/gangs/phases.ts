/**
 * How a gang of two is brought to a phase of its start or end, and kept there until something has happened to one of its
 * members: by what else is slow or away on a bad day, never by a request to Muster. Every agent of the cluster is stopped
 * while gangs are allocated, so that whatever holds one back is in place before anything of it is prepared.
 */
import type { TaskStateKind } from '@muster/common/states';
import type { JobView } from '@muster/common/views';
import { cutOff } from '../../support/hosts/cuts.ts';
import type { GangCluster } from '../../support/hosts/gangCluster.ts';
import type { Host } from '../../support/hosts/host.ts';
import { signalProcess } from '../../support/hosts/programs.ts';
import { type Gang, guardOf, untilBeating } from './beatingGang.ts';

export const phases = [
  'preparing',
  'prepared',
  'checking',
  'released',
  'starting',
  'running',
  'stopping',
] as const;
/** Of the victim: `released` is when the coordinator has stored it and the victim has not received it. */
export type Phase = (typeof phases)[number];

export interface Stage {
  readonly cluster: GangCluster;
  readonly gang: Gang;
  readonly beatsDir: string;
  readonly victim: Host;
  readonly victimRank: number;
  readonly peer: Host;
  /** What lets go of all that keeps the gang in its phase, once its victim has had its fault. */
  readonly holds: (() => void | Promise<void>)[];
}

/** Call it while the agents of both hosts are paused. Resolves once the victim is in that phase. */
export async function bringTo(phase: Phase, stage: Stage): Promise<void> {
  const { victim, peer, holds } = stage;
  switch (phase) {
    case 'preparing':
      holds.push(() => resume(victim));
      resume(peer);
      return untilPhase(stage, (tasks) => isIn(tasks, 'assigned', 'prepared'));
    case 'prepared':
      holds.push(() => resume(peer));
      resume(victim);
      return untilPhase(stage, (tasks) => isIn(tasks, 'prepared', 'assigned'));
    case 'checking':
      // It waits for an answer of its peer, which was ready and answers nobody now.
      resume(peer);
      await untilPhase(stage, (tasks) => tasks.peer.state === 'prepared');
      peer.agent.pause();
      holds.push(() => resume(peer));
      resume(victim);
      return untilPhase(stage, (tasks) => tasks.victim.address !== null);
    case 'released': {
      await holdPeer(stage);
      // It hears nothing any longer, and so not that its peer is ready, too.
      const mend = await cutOff(victim, 'nothing gets in', stage.cluster.coordinatorMachine.address);
      await letGo(stage);
      holds.push(mend);
      return untilJob(stage, 'is released', ({ attempts }) => attempts[0]?.state === 'released');
    }
    case 'starting': {
      await holdPeer(stage);
      // Only a guard can start a task.
      const guard = guardOf(victim);
      signalProcess(guard, 'SIGSTOP');
      await letGo(stage);
      holds.push(() => void signalProcess(guard, 'SIGCONT'));
      return untilPhase(stage, (tasks) => isIn(tasks, 'checked', 'running'));
    }
    case 'running':
      return untilRunning(stage);
    case 'stopping':
      await untilRunning(stage);
      await stage.cluster.api.stopJobs([stage.gang.jobId]);
      return untilJob(stage, 'is stopping', ({ state }) => state === 'stopping');
    default:
      return phase satisfies never;
  }
}

export async function letGo({ holds }: Stage): Promise<void> {
  for (const hold of holds.splice(0)) await hold();
}

/** The victim is ready; its peer cannot try its own path. */
async function holdPeer(stage: Stage): Promise<void> {
  const { victim, peer, holds } = stage;
  holds.push(await cutOff(peer, 'opens no connections', victim.address));
  resumeBoth(stage);
  await untilPhase(stage, (tasks) => isIn(tasks, 'checked', 'prepared'));
}

async function untilRunning(stage: Stage): Promise<void> {
  resumeBoth(stage);
  await untilBeating(stage.beatsDir, stage.gang.jobId);
  await untilJob(stage, 'is running', ({ state }) => state === 'running');
}

function resumeBoth({ victim, peer }: Stage): void {
  resume(victim);
  resume(peer);
}

/** Its agent, if it has one. */
export function resume({ agent }: Host): void {
  if (agent.isRunning) agent.resume();
}

type Task = JobView['attempts'][number]['tasks'][number];
type Tasks = { readonly victim: Task; readonly peer: Task };

function isIn({ victim, peer }: Tasks, victimState: TaskStateKind, peerState: TaskStateKind): boolean {
  return victim.state === victimState && peer.state === peerState;
}

async function untilPhase(stage: Stage, reached: (tasks: Tasks) => boolean): Promise<void> {
  await untilJob(stage, 'is in the phase', ({ attempts: [attempt] }) => {
    const victim = attempt?.tasks[stage.victimRank];
    const peer = attempt?.tasks[1 - stage.victimRank];
    return victim !== undefined && peer !== undefined && reached({ victim, peer });
  });
}

/** An attempt that has gone wrong before its time shows nothing of the phase. */
async function untilJob(stage: Stage, what: string, reached: (job: JobView) => boolean): Promise<void> {
  const { cluster, gang } = stage;
  const job = await cluster.untilJob(gang.jobId, what, (seen) => reached(seen) || seen.attempts.length > 1);
  if (job.attempts.length > 1) {
    throw new Error(`${job.id} went wrong before it was there: ${JSON.stringify(job.attempts)}`);
  }
}
