/**
 * Who filled the GPU. PyTorch says how much memory the device has, how much of it is free, and how much this process holds:
 * to 2.0 as `(GPU 0; 23.69 GiB total capacity; … 11.94 MiB free; 22.02 GiB reserved in total by PyTorch)` (before 1.5
 * `cached`), since 2.1 as `GPU 0 has a total capacity of 79.15 GiB of which 10 MiB is free. … this process has 30 GiB memory
 * in use`, or in a container `Process 7 has 70 GiB memory in use` of each. What nobody of these holds is somebody else's.
 */
import type { FailureVerdict } from './finding.ts';

const unitBytes: Readonly<Record<string, number>> = {
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
  bytes: 1,
};
/** A search begins where a number does, so that a line of digits is gone through once. */
const wanted = /Tried to allocate ([\d.]{1,20}) (bytes|KiB|MiB|GiB|TiB)/;
const total =
  /(?<![\d.])([\d.]{1,20}) (bytes|KiB|MiB|GiB|TiB) total capacity|total capacity of ([\d.]{1,20}) (bytes|KiB|MiB|GiB|TiB)/;
const free =
  /(?<![\d.])([\d.]{1,20}) (bytes|KiB|MiB|GiB|TiB) free|of which ([\d.]{1,20}) (bytes|KiB|MiB|GiB|TiB) is free/;
const own =
  /this process has ([\d.]{1,20}) (bytes|KiB|MiB|GiB|TiB) memory in use|(?<![\d.])([\d.]{1,20}) (bytes|KiB|MiB|GiB|TiB) (?:reserved in total|cached)/;
/** In a container PyTorch does not know itself among the processes that it lists (`Process 7 has 70 GiB memory in use`). */
const allocated = /([\d.]{1,20}) (bytes|KiB|MiB|GiB|TiB) is allocated by PyTorch/;
const unallocated = /([\d.]{1,20}) (bytes|KiB|MiB|GiB|TiB) is reserved by PyTorch/;

/** A foreign process holds less than this of the device: contexts and drivers take some as well. */
const foreignShareMin = 0.25;

export function memoryVerdict(text: string): FailureVerdict {
  const totalBytes = bytesOf(text, total);
  const freeBytes = bytesOf(text, free);
  const ownBytes = bytesOf(text, own) ?? ownOfParts(text);
  const wantedBytes = bytesOf(text, wanted);
  if (totalBytes === null || freeBytes === null || ownBytes === null || wantedBytes === null) return {};
  const foreignBytes = totalBytes - freeBytes - ownBytes;
  // What would not have fitted into an empty GPU either is nobody's fault but its own.
  const wouldFit = ownBytes + wantedBytes < totalBytes;
  if (!wouldFit || foreignBytes < foreignShareMin * totalBytes) return {};
  return {
    blame: 'platform',
    retry: 'other_node',
    advice:
      'Another process holds much of that GPU (nvidia-smi shows which): end it, or retry on another node; the program itself would have fitted.',
  };
}

function ownOfParts(text: string): number | null {
  const inUse = bytesOf(text, allocated);
  return inUse === null ? null : inUse + (bytesOf(text, unallocated) ?? 0);
}

function bytesOf(text: string, pattern: RegExp): number | null {
  const [, ...groups] = pattern.exec(text) ?? [];
  const at = groups.findIndex((group) => group !== undefined);
  const factor = unitBytes[groups[at + 1] ?? ''];
  return at < 0 || factor === undefined ? null : Number(groups[at]) * factor;
}
