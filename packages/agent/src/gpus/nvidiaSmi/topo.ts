/**
 * `nvidia-smi topo -m`: a matrix with tabs between its cells, for example
 *
 *             GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity   GPU NUMA ID
 *     GPU0     X      NV18    PXB     0-55            0               N/A
 *     GPU1    NV18     X      NODE    0-55            0               N/A
 *     NIC0    PXB     NODE     X
 *
 * and below it legends, of which the last names the NICs. The header is underlined with ANSI codes even in a pipe. Rows
 * of GPUs have an empty cell too many before the last column, rows of NICs end early or in empty cells.
 */
import type { DeviceLink } from '@muster/common/hardware';

export interface TopologyMatrix {
  /** By the driver's number of the card. */
  readonly affinities: ReadonlyMap<number, CardAffinity>;
  /** Each pair once; a card by its number, a NIC by its name. */
  readonly links: readonly TopologyLink[];
  /** Lines of the matrix that were not understood, and are excluded. */
  readonly refused: readonly string[];
}

export interface CardAffinity {
  readonly cpuAffinity: string | null;
  readonly numaNode: number | null;
}

interface TopologyLink {
  readonly from: number;
  readonly to: number | string;
  readonly kind: string;
}

const escapeCodes = new RegExp(String.raw`${String.fromCodePoint(27)}\[[\d;]*m`, 'g');
const deviceName = /^(?:GPU\d{1,4}|NIC\d{1,4}|[a-z][\w.:-]{0,40})$/;
const linkKind = /^(?:NV\d{1,2}|PIX|PXB|PHB|NODE|SYS)$/;
const cpuList = /^\d{1,5}(?:-\d{1,5})?(?:,\d{1,5}(?:-\d{1,5})?)*$/;

/** null: the text holds no such matrix. */
export function parseTopology(text: string): TopologyMatrix | null {
  const lines = text.replaceAll(escapeCodes, '').split('\n');
  const headerAt = lines.findIndex((line) => /^\s+GPU\d+(?:\s|$)/.test(line));
  const header = lines[headerAt];
  if (header === undefined) return null;
  const cellsOf = splitter(header);
  const columns = cellsOf(header).filter((cell) => cell !== '');
  const devices = columns.filter((name) => deviceName.test(name));
  const columnsAfter = columns.length - devices.length;
  const nicNames = readNicLegend(lines.slice(headerAt + 1));

  const affinities = new Map<number, CardAffinity>();
  const links: TopologyLink[] = [];
  const refused: string[] = [];
  for (const line of lines.slice(headerAt + 1)) {
    if (line.trim() === '') break;
    const row = readRow(cellsOf(line), devices, columnsAfter);
    if (row === null) {
      refused.push(line.trim());
      continue;
    }
    const from = cardIndex(row.name);
    if (from === null) continue;
    affinities.set(from, row.affinity);
    for (const [position, kind] of row.kinds.entries()) {
      const name = devices[position] ?? '';
      const to = cardIndex(name) ?? nicNames.get(name) ?? name;
      // A pair of cards stands in both rows.
      if (kind !== null && (typeof to === 'string' || from < to)) links.push({ from, to, kind });
    }
  }
  return { affinities, links, refused };
}

/** Names cards by UUID; links of cards that `uuidsByIndex` does not have are excluded. */
export function deviceLinks(
  topology: TopologyMatrix,
  uuidsByIndex: ReadonlyMap<number, string>,
): readonly DeviceLink[] {
  return topology.links.flatMap(({ from, to, kind }) => {
    const fromUuid = uuidsByIndex.get(from);
    const toName = typeof to === 'number' ? uuidsByIndex.get(to) : to;
    return fromUuid === undefined || toName === undefined ? [] : [{ from: fromUuid, to: toName, kind }];
  });
}

interface MatrixRow {
  readonly name: string;
  /** One for each device; null: the device itself. */
  readonly kinds: readonly (string | null)[];
  readonly affinity: CardAffinity;
}

/** null: not a row with one cell for each column. */
function readRow(
  cells: readonly string[],
  devices: readonly string[],
  columnsAfter: number,
): MatrixRow | null {
  const name = cells[0] ?? '';
  const self = devices.indexOf(name);
  const kinds = cells.slice(1, 1 + devices.length);
  const after = cells.slice(1 + devices.length);
  if (self === -1 || kinds.length !== devices.length) return null;
  if (!kinds.every((kind, position) => (position === self ? kind === 'X' : linkKind.test(kind)))) return null;

  if (cardIndex(name) === null) {
    if (after.length > columnsAfter + 1 || after.some((cell) => cell !== '')) return null;
  } else {
    const hasExtraCell = after.length === columnsAfter + 1 && after.at(-2) === '';
    if (after.length !== columnsAfter && !hasExtraCell) return null;
  }
  return {
    name,
    kinds: kinds.map((kind) => (kind === 'X' ? null : kind)),
    affinity: {
      cpuAffinity: cpuList.test(after[0] ?? '') ? (after[0] ?? null) : null,
      numaNode: /^\d{1,4}$/.test(after[1] ?? '') ? Number(after[1]) : null,
    },
  };
}

/**
 * By tabs; copies that went through an editor have runs of spaces in their place, and single ones where no column has a
 * name of two words. Some are indented as a whole.
 */
function splitter(header: string): (line: string) => readonly string[] {
  const separator = header.trim().includes('\t')
    ? '\t'
    : /Affinity|NUMA/.test(header)
      ? /[\t ]{2,}|\t/
      : /[\t ]+/;
  return (line) =>
    line
      .trim()
      .split(separator)
      .map((cell) => cell.trim());
}

function cardIndex(name: string): number | null {
  const digits = /^GPU(\d{1,4})$/.exec(name)?.[1];
  return digits === undefined ? null : Number(digits);
}

/** `NIC0: mlx5_0` */
function readNicLegend(lines: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    lines.flatMap((line) => {
      const entry = /^\s+(NIC\d{1,4}): ([\w.:-]{1,40})\s*$/.exec(line);
      return entry?.[1] !== undefined && entry[2] !== undefined ? [[entry[1], entry[2]] as const] : [];
    }),
  );
}
