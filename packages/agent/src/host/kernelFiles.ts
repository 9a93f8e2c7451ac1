/**
 * Reads what the kernel shows under /proc and /sys. What is not there, as in many containers, is null or empty: the
 * callers leave the value out, and none of them fails for it. Only where absence proves something, that a process is gone,
 * is a failure of ours an error (`readKernelFileUnlessGone`).
 *
 * All paths are below a root that is `/` outside of tests.
 */
import { closeSync, openSync, readdirSync, readFileSync, readSync, realpathSync } from 'node:fs';
import { readFile } from 'node:fs/promises';

/** More than the longest of these files on a machine with hundreds of interfaces and mounts; the rest is cut off. */
const bytesMax = 256 * 1024;
const buffer = Buffer.allocUnsafe(bytesMax);

/**
 * Reads a file that the kernel answers from memory, as a fact that may be missing. A read takes some 10 µs; through the
 * thread pool it would take 150.
 * @returns complete lines only; null when the file cannot be read, for whatever reason
 */
export function tryReadKernelFile(path: string): string | null {
  let descriptor: number;
  try {
    descriptor = openSync(path, 'r');
  } catch {
    return null;
  }
  try {
    let length = 0;
    while (length < bytesMax) {
      const read = readSync(descriptor, buffer, length, bytesMax - length, null);
      if (read === 0) break;
      length += read;
    }
    const text = buffer.toString('utf8', 0, length);
    return length < bytesMax ? text : text.slice(0, text.lastIndexOf('\n') + 1);
  } catch {
    return null;
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Reads a file of /proc or of a control group, whose absence proves something: that the process or the group is gone.
 * @returns null when what the file describes is gone, or is not ours to read
 * @throws {Error} when the file could not be opened for a reason of ours (too many open files): a process must never be
 * taken for dead because of that
 */
export function readKernelFileUnlessGone(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (isGoneError(error)) return null;
    throw error;
  }
}

/** Whether this error of the kernel means that what was asked about is gone, or is not ours to read. */
export function isGoneError(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  return ['ENOENT', 'ESRCH', 'ENODEV', 'EACCES', 'EPERM'].includes(code);
}

/**
 * For attributes behind which the kernel asks the device or waits for a lock that a driver can hold for a minute. The
 * event loop must not be what waits.
 * @returns trimmed; null: it cannot be read
 */
export async function askDevice(path: string): Promise<string | null> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch {
    return null;
  }
}

/** @returns sorted, empty when there is no such folder */
export function namesIn(path: string): readonly string[] {
  try {
    return readdirSync(path).sort();
  } catch {
    return [];
  }
}

/** @returns the path behind all links; null: there is none */
export function realPath(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}

/** More CPUs than any kernel is built for. */
const numbersMax = 65_536;

/** @param list as in `0-31,64-95` @returns the numbers in order; null: it is no such list */
export function parseNumberList(list: string): readonly number[] | null {
  const numbers: number[] = [];
  for (const part of list.trim().split(',')) {
    const [, first, last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(part) ?? [];
    if (first === undefined) return null;
    if (numbers.length + Number(last) - Number(first) >= numbersMax) return null;
    for (let number = Number(first); number <= Number(last); number += 1) numbers.push(number);
  }
  return numbers;
}

/** @returns null: the kernel knows of no NUMA node, which it writes as -1 */
export function readNumaNode(deviceFolder: string): number | null {
  const text = tryReadKernelFile(`${deviceFolder}/numa_node`)?.trim() ?? '';
  return /^\d{1,5}$/.test(text) ? Number(text) : null;
}

// ---- Where a PCI device is: the driver's `00000000:1b:00.0`, which Muster uses, and `0000:1b:00.0` of sysfs

const pciAddress = /^([0-9a-f]{1,8}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])$/i;

/** @returns null: that is not the address of a PCI device */
export function toPciBusId(text: string): string | null {
  const [, domain, bus, slot, part] = pciAddress.exec(text) ?? [];
  if (domain === undefined) return null;
  return `${domain.padStart(8, '0')}:${bus}:${slot}.${part}`.toLowerCase();
}

/** As sysfs names the device: four digits of domain, more only where the number needs them. */
export function toSysfsAddress(pciBusId: string): string | null {
  const whole = toPciBusId(pciBusId);
  return whole === null ? null : whole.replace(/^0{1,4}/, '');
}

/** Of the device itself, or of the one that carries it: virtio and USB devices sit below a PCI device. */
export function pciBusIdInPath(devicePath: string): string | null {
  for (const part of devicePath.split('/').reverse()) {
    const pciBusId = toPciBusId(part);
    if (pciBusId !== null) return pciBusId;
  }
  return null;
}
