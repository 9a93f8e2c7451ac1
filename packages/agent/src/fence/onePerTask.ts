/** Runs the calls of one task one after the other, because a thaw must not overlap a freeze of the same task. */
export class OnePerTask {
  private readonly last = new Map<string, Promise<unknown>>();

  run<T>(key: string, act: () => Promise<T>): Promise<T> {
    const before = this.last.get(key) ?? Promise.resolve();
    const mine = before.then(act, act);
    this.last.set(key, mine);
    const forget = () => {
      if (this.last.get(key) === mine) this.last.delete(key);
    };
    mine.then(forget, forget);
    return mine;
  }
}
