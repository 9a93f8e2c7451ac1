/**
 * What nvidia-smi prints where a value belongs, in its CSV (`[N/A]`) as in its XML (`N/A`). A text that is not plainly
 * the value is null: a number that nobody read must never look like one.
 */

import { toPciBusId } from '../../host/kernelFiles.ts';

/** Leaves room for doubt about the GPU itself, unlike a value that its driver or model merely does not offer. */
export type CellFault = 'lost' | 'reset_required' | 'unknown_error';

const numberWithUnit = /^(-?\d{1,15}(?:\.\d{1,6})?)(?: ?(?:%|MiB|W|C|MHz))?$/;
const hexNumber = /^0x([0-9a-f]{1,16})$/i;
const absences = new Set([
  '',
  'n/a',
  'none',
  'not supported',
  'not found',
  'unknown error',
  'insufficient permissions',
  'gpu is lost',
  'gpu requires reset',
  'requested functionality has been deprecated',
  'err!',
]);

const cellLengthMax = 256;
/** A sensor that claims more reads garbage. */
const celsiusMin = -100;
const celsiusMax = 250;

function withoutBrackets(cell: string): string {
  return /^\[(.*)\]$/.exec(cell)?.[1] ?? cell;
}

export function readNumber(cell: string | null | undefined): number | null {
  const digits = numberWithUnit.exec(cell ?? '')?.[1];
  return digits === undefined ? null : Number(digits);
}

/** Sizes, watts, clocks. */
export function readAmount(cell: string | null | undefined): number | null {
  const value = readNumber(cell);
  return value !== null && value >= 0 ? value : null;
}

export function readCount(cell: string | null | undefined): number | null {
  const value = readAmount(cell);
  return value !== null && Number.isSafeInteger(value) ? value : null;
}

export function readPercent(cell: string | null | undefined): number | null {
  const value = readAmount(cell);
  return value !== null && value <= 100 ? value : null;
}

export function readCelsius(cell: string | null | undefined): number | null {
  const value = readNumber(cell);
  return value !== null && value >= celsiusMin && value <= celsiusMax ? value : null;
}

/** `0x0000000000000020`; null also where a double cannot hold all bits. */
export function readMask(cell: string | null | undefined): number | null {
  const digits = hexNumber.exec(cell ?? '')?.[1];
  if (digits === undefined) return null;
  const value = Number.parseInt(digits, 16);
  return Number.isSafeInteger(value) ? value : null;
}

export function readFlag(cell: string | null | undefined): boolean | null {
  if (cell === 'Yes') return true;
  return cell === 'No' ? false : null;
}

/** Free text, such as a model's name, without what could disturb a terminal. */
export function readText(cell: string | null | undefined): string | null {
  if (cell == null || absences.has(withoutBrackets(cell).toLowerCase())) return null;
  return cell.replaceAll(/[\p{Cc}\p{Bidi_Control}]/gu, '').slice(0, cellLengthMax);
}

/** `GPU-…`, `MIG-…`, `MIG-GPU-…/3/0`. It ends up in tasks' environments, so nothing else passes. */
export function readUuid(cell: string | null | undefined): string | null {
  return cell != null && /^(?:MIG-)?(?:GPU|MIG)-[\w-]{1,80}(?:\/\d{1,3}\/\d{1,3})?$/.test(cell) ? cell : null;
}

/** `00000000:1b:00.0` */
export function readPciBusId(cell: string | null | undefined): string | null {
  return toPciBusId(cell ?? '');
}

/** The value of nvml field 230 behind the words of `gpu_recovery_action`. */
export function readRecoveryAction(cell: string | null | undefined): number | null {
  const words = (cell ?? '').toLowerCase();
  const actions: readonly [RegExp, number][] = [
    [/^none$/, 0],
    [/^(?:gpu )?reset\b/, 1],
    [/^(?:node )?reboot\b/, 2],
    [/^drain p2p\b/, 3],
    [/^drain and reset\b/, 4],
    [/^recover imex domain\b/, 5],
  ];
  return actions.find(([pattern]) => pattern.test(words))?.[1] ?? null;
}

export function faultOf(cell: string): CellFault | null {
  switch (withoutBrackets(cell).toLowerCase()) {
    case 'gpu is lost':
      return 'lost';
    case 'gpu requires reset':
      return 'reset_required';
    case 'unknown error':
    case 'err!':
      return 'unknown_error';
    default:
      return null;
  }
}
