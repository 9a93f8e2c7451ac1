/**
 * Keeps the log of a daemon from growing for ever where no journal does. The daemon has the file open for appending, so the file
 * is copied and then cut: what the daemon writes next lands at its new end. A line that is written between copy and cut is lost.
 */
import {
  closeSync,
  copyFileSync,
  fstatSync,
  openSync,
  readSync,
  rmSync,
  statSync,
  truncateSync,
  writeSync,
} from 'node:fs';

const bytesMax = 16 * 1024 * 1024;
/** Kept of a log that cannot be copied, because the disk is full. */
const tailBytes = 64 * 1024;
const lookMs = 30_000;

/**
 * Rotates the log whenever it has more than 16 MiB: what was in it is then in `PATH.1`, which replaces the one before.
 * @param path of a file that its writer has opened for appending
 * @param onProblem gets why it could not be rotated; it is tried again every 30 s
 * @returns ends that
 */
export function keepLogSmall(path: string, onProblem: (error: unknown) => void): () => void {
  const look = () => {
    try {
      rotateLog(path, bytesMax);
    } catch (error) {
      onProblem(error);
    }
  };
  look();
  const timer = setInterval(look, lookMs).unref();
  return () => clearInterval(timer);
}

/**
 * @param mostBytes size up to which a log stays as it is
 * @returns whether it was rotated
 * @throws {Error} with the kernel's code
 */
export function rotateLog(path: string, mostBytes: number): boolean {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (size <= mostBytes) return false;
  const before = `${path}.1`;
  try {
    copyFileSync(path, before);
    truncateSync(path);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT')))
      throw error;
    // Room for the daemon is worth more than its old lines.
    rmSync(before, { force: true });
    keepTail(path, size);
  }
  return true;
}

/** True if a descriptor of this process, such as 2, writes to this file. */
export function writesTo(descriptor: number, path: string): boolean {
  const [open, named] = [fstatSync(descriptor), statSync(path, { throwIfNoEntry: false })];
  return open.isFile() && named !== undefined && open.ino === named.ino && open.dev === named.dev;
}

function keepTail(path: string, size: number): void {
  const tail = Buffer.alloc(Math.min(tailBytes, size));
  const file = openSync(path, 'r+');
  try {
    const read = readSync(file, tail, 0, tail.length, size - tail.length);
    truncateSync(path);
    writeSync(file, tail.subarray(0, read), 0, read, 0);
  } finally {
    closeSync(file);
  }
}
