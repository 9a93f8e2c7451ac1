import { TestClock } from '../coordinatorFixture.ts';

/** The clocks of a machine whose system clock and boot a test sets. Its time advances as that of `TestClock`. */
export class SettableMachine extends TestClock {
  bootId = 'boot-1';
  isSynchronised: boolean | null = false;
  /** When the machine booted, by the monotonic clock. */
  bootedAtMs = 0;
  /** The system clock less the time that it should show. */
  wallOffsetMs = 0;

  override wallMs(): number {
    return super.wallMs() + this.wallOffsetMs;
  }

  readonly port = {
    bootId: () => this.bootId,
    boottimeMs: () => this.nowMs - this.bootedAtMs,
    isSynchronised: async () => this.isSynchronised,
  };
}
