/** Runs the work of each key one piece at a time, because two connections of one agent may overlap for a while. */
export class InOrder<Key> {
  private readonly queues = new Map<Key, Promise<unknown>>();

  /** Does the work when all that was asked for before under this key is done, however that ended. */
  run<T>(key: Key, work: () => Promise<T>): Promise<T> {
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

/** Resolves once the other pending events were handled. Long work awaits it between its pieces, so that nothing starves. */
export function nextRound(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
