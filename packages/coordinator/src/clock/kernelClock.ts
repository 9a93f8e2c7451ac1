/** Asks the kernel about this machine's clocks. */
import { uptime } from 'node:os';
import { readBootId } from '@muster/common/boot';

export interface MachineClock {
  /** Null if it cannot be read. */
  bootId(): string | null;
  /** CLOCK_BOOTTIME, milliseconds; it also counts while the machine sleeps. */
  boottimeMs(): number;
  /** True if the kernel says that its clock is synchronised. Null if it cannot be asked. */
  isSynchronised(): Promise<boolean | null>;
}

export const kernelClock: MachineClock = {
  bootId() {
    try {
      return readBootId() || null;
    } catch {
      return null;
    }
  },
  boottimeMs: () => uptime() * 1_000,
  async isSynchronised() {
    try {
      // Loaded only where it is asked: the library costs memory, and a confirmed clock never needs it.
      return (await import('./adjtimex.ts')).isKernelSynchronised();
    } catch {
      return null;
    }
  },
};
