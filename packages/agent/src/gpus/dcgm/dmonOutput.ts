/**
 * Output of `dcgmi dmon -e 1001,1002,1009`, read by its header, which comes again every few rows:
 *
 *     #Entity   GRACT        SMACT        PCITX
 *     ID
 *     GPU 0     0.998        0.885        589824
 *     GPU 1     N/A          N/A          N/A
 *
 * and of `dcgmi discovery -l`, which lists what DCGM's numbers stand for. Rows of MIG instances (`GPU-I 0`) carry numbers
 * of DCGM's own that `discovery -l` does not explain, so they are passed over.
 */
import type { GpuActivity } from '../gpuSource.ts';
import { ActivityBuilder, type ActivityField, activityFields, readActivity } from './activityFields.ts';

/** For `-e`: every field that the parser knows. */
export const dmonFieldIds = activityFields.map(({ id }) => id).join(',');

export interface DmonRow {
  /** DCGM's number of the card. */
  readonly gpuId: number;
  readonly activity: GpuActivity;
}

export type DmonLine =
  | { readonly kind: 'row'; readonly row: DmonRow }
  /** Header, units, MIG instances, empty lines. */
  | { readonly kind: 'other' }
  /** Something for people, most likely an error. */
  | { readonly kind: 'text'; readonly text: string };

const textCharactersMax = 300;

export class DmonParser {
  private columns: readonly (ActivityField | null)[] | null = null;

  line(raw: string): DmonLine {
    const text = raw.trim();
    const header = /^#\s*Entity\b(.*)$/i.exec(text);
    if (header !== null) {
      this.columns = cellsOf(header[1] ?? '').map(
        (name) => activityFields.find(({ column }) => column === name.toUpperCase()) ?? null,
      );
      return { kind: 'other' };
    }
    if (text === '' || /^ID\b/i.test(text) || /^GPU-C?I\s/.test(text)) return { kind: 'other' };
    const [, gpuId, rest = ''] = /^GPU\s+(\d{1,4})\b(.*)$/.exec(text) ?? [];
    const cells = cellsOf(rest);
    // A row of another width than its header would put values under wrong names.
    if (gpuId === undefined || cells.length !== this.columns?.length)
      return { kind: 'text', text: text.slice(0, textCharactersMax) };
    const builder = new ActivityBuilder();
    for (const [index, field] of this.columns.entries()) {
      if (field !== null) builder.set(field.key, readActivity(field.unit, cells[index] ?? ''));
    }
    return { kind: 'row', row: { gpuId: Number(gpuId), activity: builder.activity } };
  }
}

function cellsOf(text: string): readonly string[] {
  return text.split(/\s+/).filter((cell) => cell !== '');
}

/** UUIDs of the cards by DCGM's number. Empty for an output of another shape. */
export function parseDiscovery(output: string): ReadonlyMap<number, string> {
  const uuids = new Map<number, string>();
  let gpuId: number | null = null;
  for (const line of output.split('\n')) {
    const [, id = '', text = ''] = /^\|\s{0,80}(\d{0,9})\s{0,80}\|(.*)\|\s{0,80}$/.exec(line) ?? [];
    // A line between two cards, or the start of another table: what follows belongs to no card yet.
    if (line.startsWith('+') || !line.startsWith('|')) gpuId = null;
    if (id !== '') gpuId = Number(id);
    const uuid = /\bUUID:\s*(GPU-[\w-]{1,90})\s*$/.exec(text.trim())?.[1];
    if (gpuId !== null && uuid !== undefined) uuids.set(gpuId, uuid);
  }
  return uuids;
}
