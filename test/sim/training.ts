/** What a simulated program does as rank 0 besides running and ending: it counts steps, and saves them now and then. */

import type { Machine } from './machine.ts';
import { type Quality, type SavedCheckpoint, type Shelf, someQuality } from './shelf.ts';
import type { SimulatedProcess } from './simulatedProcess.ts';

/** Of the time that its program executes. */
export const stepMs = 10;

export class Training {
  private readonly machine: Machine;
  private readonly process: SimulatedProcess;
  private readonly shelf: Shelf;
  private readonly firstStep: number;

  constructor(machine: Machine, process: SimulatedProcess, shelf: Shelf, firstStep: number) {
    this.machine = machine;
    this.process = process;
    this.shelf = shelf;
    this.firstStep = firstStep;
  }

  get step(): number {
    return this.firstStep + Math.floor(this.process.executedMs / stepMs);
  }

  /** Once per `everyMs`, for good. */
  saveRegularly(everyMs: number, writeMs: number): void {
    this.process.after(everyMs, () => {
      this.save(writeMs, someQuality(this.machine.random), () => this.saveRegularly(everyMs, writeMs));
    });
  }

  /** After the signal of a stop. @param then it is written */
  saveLast(writeMs: number, then: () => void): void {
    const quality = this.machine.random.chance(0.9) ? 'good' : 'corrupt';
    this.save(writeMs, quality, then, true);
  }

  private save(writeMs: number, quality: Quality, then: () => void, isLast = false): void {
    const { machine, process, shelf, step } = this;
    const name = `step-${step}`;
    const beganMs = machine.timeline.nowMs;
    machine.saves += 1;
    const saved: SavedCheckpoint = {
      name,
      version: `${machine.name}-${machine.saves}`,
      step,
      quality,
      savedBy: process.task,
      savedAtMs: null,
      verdict: null,
      reread: false,
    };
    shelf.checkpoints.set(name, saved);
    process.after(writeMs, () => {
      saved.savedAtMs = machine.clock.wallMs();
      const { task } = process;
      machine.history.add({ kind: 'saved', machine: machine.name, task, step, quality, beganMs, isLast });
      then();
    });
  }
}
