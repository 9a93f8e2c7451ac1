/**
 * Tells waiters that something happened, without saying what: they look for themselves. Who waits for one subject only
 * is not woken for others, so that a thousand followers cost nothing while other jobs change.
 */
export class Bell {
  private readonly waiters = new Map<string | null, Set<() => void>>();

  /** @param subjects what it is about; left out: about anything */
  ring(subjects?: Iterable<string>): void {
    const concerned = subjects === undefined ? [...this.waiters.keys()] : [null, ...new Set(subjects)];
    for (const subject of concerned) {
      const waiting = this.waiters.get(subject) ?? [];
      this.waiters.delete(subject);
      for (const wake of waiting) wake();
    }
  }

  /**
   * Resolves at the next ring, or when aborted.
   * @param subject wait for rings about this one only; null: for any
   */
  next(abort: AbortSignal, subject: string | null = null): Promise<void> {
    return new Promise((resolve) => {
      if (abort.aborted) {
        resolve();
        return;
      }
      const waiters = this.waiters.get(subject) ?? new Set();
      this.waiters.set(subject, waiters);
      const wake = () => {
        waiters.delete(wake);
        if (waiters.size === 0 && this.waiters.get(subject) === waiters) this.waiters.delete(subject);
        abort.removeEventListener('abort', wake);
        resolve();
      };
      waiters.add(wake);
      abort.addEventListener('abort', wake, { once: true });
    });
  }
}
