import { type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';

/** One thing at a time per task: two connections of one agent may overlap while the older one dies. */
export class PerTaskOrder {
  private readonly queues = new Map<TaskKey, Promise<unknown>>();

  run<T>(task: TaskRef, work: () => Promise<T>): Promise<T> {
    const key = taskKey(task);
    const before = this.queues.get(key) ?? Promise.resolve();
    const result = before.then(work, work);
    const settled = result.then(
      () => undefined,
      () => undefined,
    );
    this.queues.set(key, settled);
    void settled.then(() => {
      if (this.queues.get(key) === settled) this.queues.delete(key);
    });
    return result;
  }

  /** Resolves when what has been asked for by now is done. */
  async settled(): Promise<void> {
    await Promise.all(this.queues.values());
  }
}
