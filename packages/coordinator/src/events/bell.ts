/** Tells waiters that something happened, without saying what: they look for themselves. */
export class Bell {
  private readonly waiters = new Set<() => void>();

  ring(): void {
    const waiting = [...this.waiters];
    this.waiters.clear();
    for (const wake of waiting) wake();
  }

  /** Resolves at the next ring, or when aborted. */
  next(abort: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (abort.aborted) {
        resolve();
        return;
      }
      const wake = () => {
        this.waiters.delete(wake);
        abort.removeEventListener('abort', wake);
        resolve();
      };
      this.waiters.add(wake);
      abort.addEventListener('abort', wake, { once: true });
    });
  }
}
