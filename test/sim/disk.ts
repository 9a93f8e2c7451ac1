/**
 * A node's disk with the agent's task records. It outlives agents; a power cut takes back what was not synced. An agent
 * that dies in the middle of a change leaves it done or not done. Leases are files in real directories, which the agent
 * reads and writes itself; those of another boot tell nothing, so a power cut need not take them back.
 */
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type HighestTerm, isFollowed, noTerm } from '@muster/agent/leases/highestTerm';

import type { ContinuityTokens } from '@muster/agent/session/continuity';
import type { Phase, TaskRecord, TaskRecords } from '@muster/agent/tasks/records';
import { type TaskRef, taskKey } from '@muster/common/ids';
import type { History } from './history.ts';
import type { Random } from './random.ts';
import type { Life, Timeline } from './timeline.ts';

interface StoredRecord {
  readonly intent: TaskRecord;
  /** Appended since, oldest first. */
  readonly phases: { readonly bootId: string; readonly phase: Phase; readonly writtenAtMs: number }[];
}

/** What the system has not written out after this long is the exception. */
const writtenOutAfterMs = 5_000;

export interface DiskParts {
  readonly machine: string;
  /** A real one; made when it is needed. */
  readonly directory: string;
  readonly timeline: Timeline;
  readonly random: Random;
  readonly history: History;
}

export class Disk {
  readonly records = new Map<string, StoredRecord>();
  readonly outputSizes = new Map<string, number>();
  fullUntilMs = 0;
  /** The agent's file of it, synced. */
  private highestTerm = noTerm;
  private tokens: readonly string[] = [];
  private readonly machine: string;
  private readonly directory: string;
  private readonly timeline: Timeline;
  private readonly random: Random;
  private readonly history: History;

  constructor({ machine, directory, timeline, random, history }: DiskParts) {
    this.machine = machine;
    this.directory = directory;
    this.timeline = timeline;
    this.random = random;
    this.history = history;
  }

  get wasEverFull(): boolean {
    return this.fullUntilMs > 0;
  }

  get isFull(): boolean {
    return this.timeline.nowMs < this.fullUntilMs;
  }

  /** What an agent works with: the same calls as the real records. */
  recordsFor(agent: Life): Pick<TaskRecords, keyof TaskRecords> {
    const { records } = this;
    const directoryOfKey = (key: string) => join(this.directory, key);
    const directory = (task: TaskRef) => directoryOfKey(taskKey(task));
    return {
      directory,
      directoryOfKey,
      outputPath: (task) => `${directory(task)}/output.log`,
      outputSize: (task) => this.outputSizes.get(taskKey(task)) ?? 0,
      create: (record) =>
        this.change(agent, () => {
          if (this.isFull) throw noSpace();
          const { task } = record.assignment;
          records.set(taskKey(task), { intent: record, phases: [] });
          mkdirSync(directory(task), { recursive: true });
          this.history.add({ kind: 'prepared', machine: this.machine, task });
        }),
      update: (task, bootId, phase) => {
        const record = records.get(taskKey(task));
        if (record === undefined) throw new Error(`ENOENT: no such file, ${taskKey(task)}/task.jsonl`);
        if (this.isFull) throw noSpace();
        record.phases.push({ bootId, phase, writtenAtMs: this.timeline.nowMs });
      },
      remove: (task) =>
        this.change(agent, () => {
          records.delete(taskKey(task));
          rmSync(directory(task), { recursive: true, force: true });
        }),
      load: () =>
        [...records.values()].map(({ intent, phases }) => {
          const newest = phases.at(-1);
          return newest === undefined ? intent : { ...intent, bootId: newest.bootId, phase: newest.phase };
        }),
    };
  }

  /** As the agent's file of it. */
  terms(): HighestTerm {
    const highest = () => this.highestTerm;
    return {
      get highest() {
        return highest();
      },
      admit: (term) => {
        if (!isFollowed(term, this.highestTerm)) return false;
        this.highestTerm = term;
        return true;
      },
    };
  }

  /** As the agent's file of it, synced before it is confirmed. */
  continuity(): ContinuityTokens {
    const tokens = () => this.tokens;
    return {
      get tokens() {
        return tokens();
      },
      keep: (next) => {
        if (this.isFull) return false;
        this.tokens = next;
        return true;
      },
    };
  }

  powerCut(): void {
    const safeBeforeMs = this.timeline.nowMs - writtenOutAfterMs;
    for (const { phases } of this.records.values()) {
      const kept = phases.findLastIndex(
        (each) => each.writtenAtMs <= safeBeforeMs || this.random.chance(0.3),
      );
      phases.length = kept + 1;
    }
  }

  /** Takes a moment, and happens or not when the agent dies in it. */
  private change(agent: Life, apply: () => void): Promise<void> {
    const delayMs = this.random.between(1, 15);
    const survivesDeath = this.random.chance(0.5);
    let underway = true;
    agent.onEnd(() => {
      if (underway && survivesDeath && !this.isFull) apply();
    });
    return new Promise((resolve, reject) => {
      this.timeline.at(delayMs, agent, () => {
        underway = false;
        try {
          apply();
          resolve();
        } catch (error) {
          reject(error);
        }
      });
    });
  }
}

function noSpace(): Error {
  return Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
}
