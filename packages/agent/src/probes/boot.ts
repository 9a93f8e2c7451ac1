/** This boot of this machine, and the clock that leases and time limits count in. */
import { readFileSync } from 'node:fs';
import { uptime } from 'node:os';

/**
 * The id of this boot: a new one proves that every process of an earlier boot is dead. Pids and start times mean nothing
 * across it.
 */
export function readBootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}

/** CLOCK_BOOTTIME in milliseconds: goes on while the machine sleeps, is the same for every process, never jumps. */
export function boottimeMs(): number {
  return Math.round(uptime() * 1000);
}
