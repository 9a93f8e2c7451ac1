import { readFileSync } from 'node:fs';

/**
 * The id of this boot: a new one proves that every process of an earlier boot is dead. Pids and start times mean nothing
 * across it.
 * @throws {Error} of the file system, where /proc cannot be read
 */
export function readBootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}
