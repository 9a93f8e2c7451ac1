/** Lets what concerns one task happen one after the other: a thaw must not meet a freeze that is under way. */
export class OnePerTask {
  readonly #last = new Map<string, Promise<unknown>>();

  run<T>(key: string, act: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const mine = before.then(act, act);
    this.#last.set(key, mine);
    const forget = () => {
      if (this.#last.get(key) === mine) this.#last.delete(key);
    };
    mine.then(forget, forget);
    return mine;
  }
}
