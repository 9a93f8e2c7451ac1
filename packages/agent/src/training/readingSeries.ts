/** Readings of one task's training on their way to the coordinator: at most one a second, the last of it. */
import type { TaskRef } from '@muster/common/ids';
import type { TrainingReading, TrainingValues } from '@muster/common/training';

/** Ten minutes: as long as the telemetry of GPUs waits for a coordinator that is away. */
const secondsMax = 600;

interface Second {
  readonly values: TrainingValues;
  readonly atMs: number;
}

export class ReadingSeries {
  private readonly seconds = new Map<number, Second>();

  /** @param atMs wall clock */
  add(values: TrainingValues, atMs: number): void {
    const second = Math.floor(atMs / 1_000);
    const before = this.seconds.get(second);
    this.seconds.set(second, { values: { ...before?.values, ...values }, atMs });
    if (this.seconds.size <= secondsMax) return;
    const [oldest] = this.seconds.keys();
    if (oldest !== undefined) this.seconds.delete(oldest);
  }

  get hasSome(): boolean {
    return this.seconds.size > 0;
  }

  /** What has come since the last time, oldest first. */
  take(task: TaskRef): readonly TrainingReading[] {
    const taken = [...this.seconds.values()].map(({ values, atMs }) => ({ task, atMs, values }));
    this.seconds.clear();
    return taken;
  }
}
