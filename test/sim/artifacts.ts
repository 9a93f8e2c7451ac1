/**
 * What the jobs of steps of pipelines make: files on storage that every machine sees, and the lines about them in the output of a job,
 * which reach the coordinator after the job has ended, or never. It stands for the script around a step's command, and for the log store.
 */
import { createHash } from 'node:crypto';
import type { TaskRef } from '@muster/common/ids';
import type { LogStore } from '@muster/coordinator/logs/logStore';
import type { Random } from './random.ts';
import type { Timeline } from './timeline.ts';

/** It arrives after the end of the job was reported, and sometimes so late that nobody would wait for it by the clock. */
const arrivesMsMax = 3_000;
const lateChance = 0.05;
const lateMsMax = 400_000;
/** That it never does, as when the disk of the node is gone. */
const lostChance = 0.03;

interface Place {
  readonly name: string;
  readonly path: string;
}

export interface StepFiles {
  readonly inputs: readonly (Place & { readonly digest: string })[];
  readonly outputs: readonly Place[];
}

/** What a command does with artifacts. Without any it is run as it is. */
export function stepFilesOf(command: readonly string[]): StepFiles {
  const isStep = command[3] === 'muster-step';
  const [inputs, outputs] = isStep ? [Number(command[4]), Number(command[5])] : [0, 0];
  const at = (index: number) => command[6 + index] ?? '';
  const firstOutput = inputs * 4;
  return {
    inputs: Array.from({ length: inputs }, (_, index) => ({
      name: at(index * 4),
      path: at(index * 4 + 2),
      digest: at(index * 4 + 3),
    })),
    outputs: Array.from({ length: outputs }, (_, index) => ({
      name: at(firstOutput + index * 3),
      path: at(firstOutput + index * 3 + 2),
    })),
  };
}

export class Artifacts {
  /** Digests by path. */
  private readonly made = new Map<string, string>();
  /** By attempt: what rank 0 has printed, and when the coordinator has it. */
  private readonly printed = new Map<string, { readonly bytes: Buffer; readonly atMs: number }>();
  private readonly timeline: Timeline;
  private readonly random: Random;

  constructor(timeline: Timeline, random: Random) {
    this.timeline = timeline;
    this.random = random;
  }

  has({ path, digest }: StepFiles['inputs'][number]): boolean {
    return this.made.get(path) === digest;
  }

  /** The program of a step has ended well. Each attempt writes something else. @returns bytes of its output; null: as many as before */
  make(task: TaskRef, { outputs }: StepFiles): number | null {
    if (outputs.length === 0) return null;
    const lines = outputs.map(({ name, path }) => {
      const hash = createHash('sha256').update(`${path} ${task.attempt}`).digest('hex');
      this.made.set(path, `sha256:${hash}`);
      return `@muster-output ${name} ${path.length} ${hash}\n`;
    });
    const isLost = this.random.chance(lostChance);
    const atMs = isLost
      ? Number.POSITIVE_INFINITY
      : this.timeline.nowMs +
        this.random.between(0, this.random.chance(lateChance) ? lateMsMax : arrivesMsMax);
    const bytes = Buffer.from(lines.join(''));
    this.printed.set(keyOf(task), { bytes, atMs });
    return bytes.length;
  }

  /** Its node still has some of the output of the task to send. */
  isUnsent(task: TaskRef): boolean {
    const { atMs = 0 } = this.printed.get(keyOf(task)) ?? {};
    return atMs > this.timeline.nowMs && atMs !== Number.POSITIVE_INFINITY;
  }

  /** As the coordinator has it now. */
  readonly logs: Pick<LogStore, 'size' | 'read' | 'tailOffset'> = {
    size: async (task) => this.arrived(task).length,
    read: async (task, offset, limit) => this.arrived(task).subarray(offset, offset + limit),
    tailOffset: async () => 0,
  };

  private arrived(task: TaskRef): Buffer {
    const printed = this.printed.get(keyOf(task));
    return printed === undefined || printed.atMs > this.timeline.nowMs ? Buffer.alloc(0) : printed.bytes;
  }
}

function keyOf({ jobId, attempt, nodeRank }: TaskRef): string {
  return `${jobId}.${attempt}.${nodeRank}`;
}
