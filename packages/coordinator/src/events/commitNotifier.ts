/**
 * Wakes waiters after commits and notices, without data: they read the changes themselves. A waiter for one subject is not
 * woken for others, so that a thousand followers cost nothing while other jobs change.
 */
export class CommitNotifier {
  private readonly waiters = new Map<string | null, Set<() => void>>();

  /** Wakes the waiters. @param subjects the subjects that changed; without them, every waiter is woken */
  notify(subjects?: Iterable<string>): void {
    const concerned = subjects === undefined ? [...this.waiters.keys()] : [null, ...new Set(subjects)];
    for (const subject of concerned) {
      const waiting = this.waiters.get(subject) ?? [];
      this.waiters.delete(subject);
      for (const wake of waiting) wake();
    }
  }

  /**
   * Resolves at the next notification, or when aborted.
   * @param subject the only subject to wait for; null for any subject
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
