/** How many files and sockets this process may have open at once. */
import { readFileSync } from 'node:fs';

/** What POSIX guarantees at least; it serves where the kernel tells nothing. */
const fallback = 1_024;

/** The soft limit, as the kernel tells it in /proc/self/limits (proc(5)). */
export function descriptorsMax(read: () => string = () => readFileSync('/proc/self/limits', 'utf8')): number {
  let text: string;
  try {
    text = read();
  } catch {
    return fallback;
  }
  const [, soft] = /^Max open files +(\d+|unlimited)/m.exec(text) ?? [];
  if (soft === undefined) return fallback;
  return soft === 'unlimited' ? Number.MAX_SAFE_INTEGER : Number(soft);
}
