/** The flags of `muster submit`, laid over what the file says. Pure; flags are kept as typed and checked by the schema. */
import { nodeRangeForm, parseNodeRange } from './nodeRange.ts';
import { isMapping, quote, type SpecPath, valueAt } from './path.ts';
import type { Finding, PlacedFinding } from './problems.ts';
import { parseSizeMb, sizeForm } from './size.ts';

/** Flag values as typed. undefined: not given. */
export interface SpecOverrides {
  readonly name?: string | undefined;
  readonly image?: string | undefined;
  /** argv after `--`; replaces command and args of the file. */
  readonly command?: readonly string[] | undefined;
  /** `NAME=VALUE`, or `NAME` to copy from the caller's environment. Added to the file's. */
  readonly env?: readonly string[] | undefined;
  readonly workdir?: string | undefined;
  readonly umask?: string | undefined;
  /** `2`, or a range such as `1:4`. */
  readonly nodes?: string | undefined;
  readonly topology?: string | undefined;
  readonly gpus?: string | undefined;
  readonly gpuType?: readonly string[] | undefined;
  /** `80G`; a bare number is MB. */
  readonly gpuMemory?: string | undefined;
  readonly cpus?: string | undefined;
  readonly memory?: string | undefined;
  readonly shm?: string | undefined;
  /** Added to the file's. */
  readonly volumes?: readonly string[] | undefined;
  readonly priority?: string | undefined;
  readonly preemptible?: boolean | undefined;
  readonly maxRuntime?: string | undefined;
  readonly stopGrace?: string | undefined;
  readonly launcher?: string | undefined;
  readonly network?: string | undefined;
  /** Switches it on; a floor that the file sets stays. */
  readonly preflight?: boolean | undefined;
  readonly lease?: string | undefined;
  readonly nodeLoss?: string | undefined;
  readonly maxAttempts?: string | undefined;
  readonly stopSignal?: string | undefined;
  readonly onDivergence?: string | undefined;
  readonly onHang?: string | undefined;
  readonly maxPreemptions?: string | undefined;
  /** `NAME=VALUE`. Added to the file's. */
  readonly params?: readonly string[] | undefined;
  readonly keepLast?: string | undefined;
  readonly checkpointPattern?: string | undefined;
  readonly checkpointDir?: string | undefined;
  /** `100`, `0-9%4`, `1,3,7`. */
  readonly array?: string | undefined;
  /** Added to the file's. */
  readonly after?: readonly string[] | undefined;
  /** `NAME=VALUE`. Added to the file's. */
  readonly labels?: readonly string[] | undefined;
  readonly project?: string | undefined;
}

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Merged {
  /** In the shape of the job file, not yet checked. */
  readonly value: unknown;
  /** Flags that cannot be laid over anything. */
  readonly findings: readonly PlacedFinding[];
  /** The flag that set the value at a path, or null. */
  flagOf(path: SpecPath): string | null;
}

type Reading = { readonly value: unknown } | { readonly got: string; readonly expected: string };

interface ValueFlag {
  readonly flag: string;
  readonly path: SpecPath;
  readonly given: (overrides: SpecOverrides) => unknown;
  readonly read?: (typed: string) => Reading;
}

/** Text that is no number goes to the schema as it is, which then says what was expected. */
const asNumber = (typed: string): { readonly value: unknown } => {
  return { value: /^-?\d+(?:\.\d+)?$/.test(typed.trim()) ? Number(typed) : typed };
};

/** A number goes on as one, `1:4` as a range of the job file. */
const asNodes = (typed: string): Reading => {
  const range = parseNodeRange(typed);
  if (range !== null) return { value: range };
  const number = asNumber(typed);
  return number.value === typed ? { got: typed, expected: nodeRangeForm } : number;
};

/** `3e-4` is a number as well, which can be scaled. */
function asParam(typed: string): string | number {
  return /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(typed) ? Number(typed) : typed;
}

const asMegabytes = (typed: string): Reading => {
  const megabytes = parseSizeMb(typed);
  return megabytes === null ? { got: typed, expected: sizeForm } : { value: megabytes };
};

const valueFlags: readonly ValueFlag[] = [
  { flag: '--name', path: ['name'], given: (flags) => flags.name },
  { flag: '--project', path: ['project'], given: (flags) => flags.project },
  { flag: '--image', path: ['image'], given: (flags) => flags.image },
  { flag: '--workdir', path: ['workdir'], given: (flags) => flags.workdir },
  { flag: '--umask', path: ['umask'], given: (flags) => flags.umask },
  { flag: '--nodes', path: ['resources', 'nodes'], given: (flags) => flags.nodes, read: asNodes },
  { flag: '--topology', path: ['resources', 'topology'], given: (flags) => flags.topology },
  { flag: '--gpus', path: ['resources', 'gpus'], given: (flags) => flags.gpus, read: asNumber },
  { flag: '--gpu-type', path: ['resources', 'gpu_type'], given: (flags) => flags.gpuType },
  {
    flag: '--gpu-memory',
    path: ['resources', 'gpu_memory_mb'],
    given: (flags) => flags.gpuMemory,
    read: asMegabytes,
  },
  { flag: '--cpus', path: ['resources', 'cpus'], given: (flags) => flags.cpus, read: asNumber },
  { flag: '--memory', path: ['resources', 'memory_mb'], given: (flags) => flags.memory, read: asMegabytes },
  { flag: '--shm', path: ['resources', 'shm_mb'], given: (flags) => flags.shm, read: asMegabytes },
  { flag: '--priority', path: ['priority'], given: (flags) => flags.priority, read: asNumber },
  { flag: '--preemptible', path: ['preemptible'], given: (flags) => flags.preemptible },
  { flag: '--max-runtime', path: ['max_runtime'], given: (flags) => flags.maxRuntime },
  { flag: '--stop-grace', path: ['stop_grace'], given: (flags) => flags.stopGrace },
  { flag: '--launcher', path: ['launcher'], given: (flags) => flags.launcher },
  { flag: '--network', path: ['network'], given: (flags) => flags.network },
  { flag: '--lease', path: ['lease'], given: (flags) => flags.lease },
  { flag: '--node-loss', path: ['node_loss'], given: (flags) => flags.nodeLoss },
  {
    flag: '--max-attempts',
    path: ['retry', 'max_attempts'],
    given: (flags) => flags.maxAttempts,
    read: asNumber,
  },
  {
    flag: '--max-preemptions',
    path: ['retry', 'max_preemptions'],
    given: (flags) => flags.maxPreemptions,
    read: asNumber,
  },
  { flag: '--stop-signal', path: ['stop_signal'], given: (flags) => flags.stopSignal },
  { flag: '--on-divergence', path: ['on_divergence'], given: (flags) => flags.onDivergence },
  { flag: '--on-hang', path: ['on_hang'], given: (flags) => flags.onHang },
  {
    flag: '--keep-last',
    path: ['checkpoint', 'keep_last'],
    given: (flags) => flags.keepLast,
    read: asNumber,
  },
  {
    flag: '--checkpoint-pattern',
    path: ['checkpoint', 'pattern'],
    given: (flags) => flags.checkpointPattern,
  },
  { flag: '--array', path: ['array'], given: (flags) => flags.array },
  { flag: '--checkpoint-dir', path: ['checkpoint', 'dir'], given: (flags) => flags.checkpointDir },
];

/** @param value what the file says, `{}` without a file; left as it is */
export function applyOverrides(value: unknown, overrides: SpecOverrides, environment: Environment): Merged {
  const merge = new Merge(value);
  for (const { flag, path, given, read } of valueFlags) {
    const typed = given(overrides);
    if (typed === undefined) continue;
    const reading = read && typeof typed === 'string' ? read(typed) : { value: typed };
    // What is refused stands in its place all the same: other checks must not take it for left out.
    merge.set(path, 'value' in reading ? reading.value : reading.got, flag);
    if ('got' in reading) merge.refuse(path, flag, `got ${quote(reading.got, 60)}`, reading.expected);
  }
  if (overrides.preflight === true && !isMapping(valueAt(merge.value, ['preflight']))) {
    merge.set(['preflight'], true, '--preflight');
  }
  if (overrides.command !== undefined) {
    merge.remove('args');
    merge.set(['command'], overrides.command, '--');
  }
  for (const pair of overrides.env ?? []) {
    const { name, text } = splitPair(pair);
    const copied = text ?? environment[name];
    if (name === '') merge.refuse(['env'], '--env', `got ${quote(pair, 60)}`, 'NAME=VALUE or NAME');
    else if (copied !== undefined) merge.set(['env', name], copied, `--env ${name}`);
    else merge.refuse(['env', name], `--env ${name}`, 'not set in your environment', `--env ${name}=VALUE`);
  }
  for (const pair of overrides.labels ?? []) {
    const { name, text } = splitPair(pair);
    if (name === '' || text === null)
      merge.refuse(['labels'], '--label', `got ${quote(pair, 60)}`, 'NAME=VALUE');
    else merge.set(['labels', name], text, `--label ${name}`);
  }
  for (const pair of overrides.params ?? []) {
    const { name, text } = splitPair(pair);
    if (name === '' || text === null)
      merge.refuse(['params'], '--param', `got ${quote(pair, 60)}`, 'NAME=VALUE');
    else merge.set(['params', name], asParam(text), `--param ${name}`);
  }
  for (const volume of overrides.volumes ?? []) merge.append('volumes', volume, '--volume');
  for (const jobId of overrides.after ?? []) merge.append('after', jobId, '--after');
  return merge;
}

function splitPair(pair: string): { readonly name: string; readonly text: string | null } {
  const equals = pair.indexOf('=');
  return equals < 0
    ? { name: pair, text: null }
    : { name: pair.slice(0, equals), text: pair.slice(equals + 1) };
}

class Merge implements Merged {
  value: unknown;
  readonly findings: PlacedFinding[] = [];
  private readonly flags = new Map<string, string>();

  constructor(value: unknown) {
    this.value = value;
  }

  set(path: SpecPath, value: unknown, flag: string): void {
    this.value = withValue(this.value, path, value);
    this.flags.set(JSON.stringify(path), flag);
  }

  append(key: string, item: string, flag: string): void {
    const present = isMapping(this.value) ? this.value[key] : undefined;
    if (present === undefined) this.set([key], [item], flag);
    else if (Array.isArray(present)) {
      this.value = withValue(this.value, [key], [...present, item]);
      this.flags.set(JSON.stringify([key, present.length]), flag);
    }
  }

  remove(key: string): void {
    if (!isMapping(this.value)) return;
    this.value = Object.fromEntries(Object.entries(this.value).filter(([other]) => other !== key));
  }

  refuse(path: SpecPath, flag: string, message: string, expected: string): void {
    const finding: Finding = { path, at: 'value', message, expected, suggestion: null };
    this.findings.push({ finding, origin: { line: null, column: null, flag } });
  }

  flagOf(path: SpecPath): string | null {
    const flag = this.flags.get(JSON.stringify(path));
    if (flag !== undefined) return flag;
    return path.length === 0 ? null : this.flagOf(path.slice(0, -1));
  }
}

/** A copy with one value changed. What is no mapping where one belongs stays, for the schema to report at its place. */
function withValue(container: unknown, path: SpecPath, value: unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return value;
  const mapping = container === undefined ? {} : container;
  if (!isMapping(mapping)) return container;
  const inner = Object.hasOwn(mapping, key) ? mapping[key] : undefined;
  return { ...mapping, [key]: withValue(inner, rest, value) };
}
