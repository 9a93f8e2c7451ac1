/** The clock that leases and time limits count in. */
import { uptime } from 'node:os';

/** CLOCK_BOOTTIME in milliseconds: also counts while the machine sleeps, is the same for every process, never jumps. */
export function boottimeMs(): number {
  return Math.round(uptime() * 1000);
}
