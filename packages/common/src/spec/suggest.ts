/** "Did you mean": from what was written to what was probably meant. Pure; knows the job file's words only as data. */
import { suggestDuration } from './duration.ts';
import { networkOfAddress } from './network.ts';
import { parseNodeRange } from './nodeRange.ts';
import type { SpecPath } from './path.ts';
import { parseSizeMb } from './size.ts';

/** Longer words than this are no typing slips of ours, and comparing them costs time. */
const wordLengthMax = 40;

/**
 * The candidate closest to a word: the same but for case, `-` and `_`, or few typing slips away, or the only one that
 * begins or is begun with it. null when none is close.
 */
export function closest(word: string, candidates: readonly string[]): string | null {
  if (word.length > wordLengthMax) return null;
  const plain = plainWord(word);
  if (plain === '') return null;
  const ranked = candidates
    .map((candidate) => ({ candidate, distance: editDistance(plain, plainWord(candidate)) }))
    .sort((a, b) => a.distance - b.distance || (a.candidate < b.candidate ? -1 : 1));
  const [best] = ranked;
  // A short word is close to many; one slip in three letters is the most that still looks like a slip.
  if (best && best.distance <= Math.min(3, Math.floor(plain.length / 3))) return best.candidate;
  const related = candidates.filter((candidate) => sharesPrefix(plain, plainWord(candidate)));
  return related.length === 1 ? (related[0] ?? null) : null;
}

function plainWord(word: string): string {
  return word.toLowerCase().replaceAll(/[-_ ]/g, '');
}

function sharesPrefix(a: string, b: string): boolean {
  return Math.min(a.length, b.length) >= 3 && (a.startsWith(b) || b.startsWith(a));
}

/** Damerau-Levenshtein, adjacent letters swapped counting once (optimal string alignment). */
export function editDistance(a: string, b: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const substitution = cell(previous, column - 1) + (a[row - 1] === b[column - 1] ? 0 : 1);
      let cost = Math.min(substitution, cell(previous, column) + 1, cell(current, column - 1) + 1);
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      if (swapped) cost = Math.min(cost, cell(beforePrevious, column - 2) + 1);
      current.push(cost);
    }
    beforePrevious = previous;
    previous = current;
  }
  return cell(previous, b.length);
}

function cell(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}

/** What other schedulers and container tools call our settings. */
const foreignKeys: ReadonlyMap<string, string> = new Map([
  ['cmd', 'command'],
  ['run', 'command'],
  ['script', 'command'],
  ['entrypoint', 'command'],
  ['environment', 'env'],
  ['envs', 'env'],
  ['cwd', 'workdir'],
  ['workingdir', 'workdir'],
  ['workingdirectory', 'workdir'],
  ['container', 'image'],
  ['dockerimage', 'image'],
  ['mounts', 'volumes'],
  ['timeout', 'max_runtime'],
  ['time', 'max_runtime'],
  ['timelimit', 'max_runtime'],
  ['walltime', 'max_runtime'],
  ['graceperiod', 'stop_grace'],
  ['dependson', 'after'],
  ['dependencies', 'after'],
  ['tags', 'labels'],
  ['account', 'project'],
  ['jobarray', 'array'],
  ['arraysize', 'array'],
  ['retries', 'retry.max_attempts'],
  ['cpu', 'resources.cpus'],
  ['mem', 'resources.memory_mb'],
  ['memory', 'resources.memory_mb'],
  ['shm', 'resources.shm_mb'],
  ['shmsize', 'resources.shm_mb'],
  ['gpumemory', 'resources.gpu_memory_mb'],
  ['gputypes', 'resources.gpu_type'],
  ['numnodes', 'resources.nodes'],
  ['nnodes', 'resources.nodes'],
  ['minnodes', 'resources.nodes'],
  ['maxnodes', 'resources.nodes'],
  ['interface', 'network'],
  ['ifname', 'network'],
  ['socketifname', 'network'],
  ['placement', 'resources.topology'],
  ['starttimeout', 'prepare_timeout'],
  ['pulltimeout', 'prepare_timeout'],
  ['rdzvtimeout', 'rendezvous_timeout'],
  ['leasettl', 'lease'],
  ['onnodeloss', 'node_loss'],
  ['minbandwidth', 'preflight.min_bandwidth_mbps'],
  ['gpuspernode', 'resources.gpus'],
]);

/**
 * The key meant by an unknown one. Within the same mapping it is returned bare (`gpus`), elsewhere with its whole path
 * (`resources.gpus`).
 * @param mapping path of the mapping that holds the key, such as `resources`; empty for the outermost
 * @param known keys of each mapping by its path
 */
export function suggestKey(
  key: string,
  mapping: string,
  known: ReadonlyMap<string, readonly string[]>,
): string | null {
  const siblings = known.get(mapping) ?? [];
  const elsewhere = new Map<string, string>();
  for (const [path, keys] of known) {
    if (path === mapping) continue;
    for (const other of keys) elsewhere.set(other, path === '' ? other : `${path}.${other}`);
  }
  const foreign = foreignKeys.get(plainWord(key));
  if (foreign !== undefined) return relativeTo(mapping, foreign);
  const exact = elsewhere.get(key);
  if (exact !== undefined) return exact;
  const sibling = closest(key, siblings);
  if (sibling !== null) return sibling;
  const distant = closest(key, [...elsewhere.keys()]);
  return distant === null ? null : (elsewhere.get(distant) ?? null);
}

function relativeTo(mapping: string, path: string): string {
  const prefix = `${mapping}.`;
  return mapping !== '' && path.startsWith(prefix) ? path.slice(prefix.length) : path;
}

type Repair = (written: string) => string | null;

const asNumber: Repair = (written) =>
  /^\d{1,15}(?:\.\d{1,6})?$/.test(written.trim()) ? written.trim() : null;

const asMegabytes: Repair = (written) => parseSizeMb(written)?.toString() ?? asNumber(written);

const asBoolean: Repair = (written) => {
  const word = written.trim().toLowerCase();
  if (['yes', 'y', 'on', 'true', '1'].includes(word)) return 'true';
  return ['no', 'n', 'off', 'false', '0'].includes(word) ? 'false' : null;
};

/** `1-4` → `{min: 1, max: 4}`. */
const asNodes: Repair = (written) => {
  const range = parseNodeRange(written);
  return range === null ? asNumber(written) : `{min: ${range.min}, max: ${range.max}}`;
};

/** Words of other tools, or of everyday, for one of ours. */
function asWord(words: Readonly<Record<string, readonly string[]>>): Repair {
  const meant = new Map(
    Object.entries(words).flatMap(([ours, theirs]) => theirs.map((word) => [word, ours])),
  );
  return (written) => meant.get(plainWord(written)) ?? null;
}

/** A DNS label out of free text: `Llama 7B` → `llama-7b`; empty when no letter or digit is left. */
export function toLabel(written: string): string {
  const dashed = written
    .slice(0, 200)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-');
  return trimDashes(trimDashes(dashed).slice(0, 63));
}

function trimDashes(text: string): string {
  return text.replace(/^-/, '').replace(/-$/, '');
}

const asLabel: Repair = (written) => toLabel(written) || null;

const repairs: ReadonlyMap<string, Repair> = new Map([
  ['name', asLabel],
  ['project', asLabel],
  ['priority', asNumber],
  ['preemptible', asBoolean],
  ['max_runtime', suggestDuration],
  ['stop_grace', suggestDuration],
  [
    'launcher',
    asWord({
      torchrun: ['accelerate', 'deepspeed', 'torch', 'pytorch'],
      'mpi-hostfile': ['mpirun', 'mpiexec', 'openmpi'],
    }),
  ],
  ['network', networkOfAddress],
  ['preflight', asBoolean],
  ['preflight.min_bandwidth_mbps', asNumber],
  ['prepare_timeout', suggestDuration],
  ['rendezvous_timeout', suggestDuration],
  ['lease', suggestDuration],
  ['on_lease_expiry', asWord({ freeze: ['pause', 'suspend'], kill: ['stop', 'terminate', 'end'] })],
  ['node_loss', asWord({ requeue: ['retry', 'restart', 'reschedule'], hold: ['wait', 'keep'] })],
  ['resources.topology', asWord({ required: ['strict', 'must'], preferred: ['soft', 'any'] })],
  ['resources.nodes', asNodes],
  ['resources.nodes.min', asNumber],
  ['resources.nodes.max', asNumber],
  ['resources.gpus', asNumber],
  ['resources.cpus', asNumber],
  ['resources.gpu_memory_mb', asMegabytes],
  ['resources.memory_mb', asMegabytes],
  ['resources.shm_mb', asMegabytes],
  ['retry.max_attempts', asNumber],
  ['retry.backoff.initial', suggestDuration],
  ['retry.backoff.max', suggestDuration],
  ['checkpoint.keep_last', asNumber],
]);

/** The value meant by a wrong one of the right idea: `64G` for a number of MB, `yes` for true, `24 hours`. */
export function suggestValue(path: SpecPath, written: unknown): string | null {
  if (typeof written !== 'string') return null;
  const suggestion = repairs.get(path.join('.'))?.(written) ?? null;
  return suggestion === written && Number.isNaN(Number(written)) ? null : suggestion;
}
