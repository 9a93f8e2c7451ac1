/** Kinds of settings that are text of a form of their own: names, images, paths, volumes, other jobs. */
import { isSecretName } from '../secrets.ts';
import { afterForm, afterPattern, formatDependency, parseDependency } from './after.ts';
import { arrayIndexMax } from './array.ts';
import { fillArrayIndex } from './arrayIndex.ts';
import {
  argument,
  type FlagReading,
  listOf,
  text,
  type ValueKind,
  type WrittenText,
  writtenText,
} from './kinds.ts';

/** A DNS label. */
export const labelPattern = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
export const labelForm = '1 to 63 of a-z, 0-9 and "-", with a letter or digit at both ends';
const memberNamePattern =
  /^(?:[a-z0-9]|\{array_index\})(?:(?:[a-z0-9-]|\{array_index\}){0,61}(?:[a-z0-9]|\{array_index\}))?$/;

/** A DNS label out of free text: `Llama 7B` → `llama-7b`; empty when no letter or digit is left. */
export function toLabel(written: string): string {
  const dashed = written
    .slice(0, 200)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-');
  return trimDashes(trimDashes(dashed).slice(0, 63));
}

function trimDashes(label: string): string {
  return label.replace(/^-/, '').replace(/-$/, '');
}

const suggestLabel = (written: string) => toLabel(written) || null;

/** `/opt/bin/torchrun train.py` → `torchrun`; for shell text the first word that is no variable assignment. */
export function programName({ command }: Readonly<Record<string, unknown>>): string {
  const words =
    typeof command === 'string'
      ? command.trim().split(/\s+/, 20)
      : ((command ?? []) as readonly WrittenText[]).slice(0, 1).map(String);
  const program = words.find((word) => !/^\w+=/.test(word)) ?? '';
  const basename = program.slice(program.lastIndexOf('/') + 1).replace(/(?<=.)\.\w{1,4}$/, '');
  return toLabel(basename) || 'job';
}

export const jobName = text(memberNamePattern, `a name: ${labelForm}`, {
  isText: true,
  suggest: suggestLabel,
  refine: [
    (name) => labelPattern.test(fillArrayIndex(name, arrayIndexMax)),
    'a name that has at most 63 characters with its index',
  ],
});

export const projectName = text(labelPattern, `a project name: ${labelForm}`, {
  isText: true,
  suggest: suggestLabel,
});

/** `[registry[:port]/]path[:tag][@digest]`, as Docker reads it (distribution/reference grammar). */
const imageParts = {
  registry: '(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?(?::\\d{1,5})?/)?',
  component: '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*',
  tag: '(?::\\w[\\w.-]{0,127})?',
  digest: '(?:@sha256:[a-f0-9]{64})?',
};
const imagePattern = new RegExp(
  `^${imageParts.registry}${imageParts.component}(?:/${imageParts.component})*${imageParts.tag}${imageParts.digest}$`,
);

/** @param example such as `/workspace` */
export const absolutePath = (example: string) =>
  text(/^\/\P{Cc}{0,4095}$/u, `an absolute path, such as ${example}`);

export const imageReference = text(imagePattern, 'an image such as nvcr.io/nvidia/pytorch:24.01-py3', {
  lengthMax: [512, 'an image reference of at most 512 characters'],
});

/** The form alone, for editors. */
const networkPattern =
  /^(?:\d{1,3}(?:\.\d{1,3}){3}\/\d{1,2}|[0-9a-fA-F:.]{2,45}\/\d{1,3}|[A-Za-z][A-Za-z0-9._@-]{0,14})$/;
const networkForm = 'a network such as 10.1.0.0/16, or an interface such as ib0';

/** An interface, or a network that is one: with an address that exists and, of IPv4, no bits behind its prefix. */
function isNetwork(written: string): boolean {
  const [address = '', prefix] = written.split('/');
  if (prefix === undefined || networkOfAddress(written) === written) return true;
  return URL.canParse(`http://[${address}]`) && Number(prefix) <= 128;
}

/** `10.1.2.3/16` → `10.1.0.0/16`; null for what is no IPv4 address with a prefix. */
function networkOfAddress(written: string): string | null {
  const [, address = '', prefix = ''] = /^(\d{1,3}(?:\.\d{1,3}){3})\/(\d{1,2})$/.exec(written) ?? [];
  const parts = address.split('.').map(Number);
  const bits = Number(prefix);
  if (prefix === '' || bits > 32 || parts.some((part) => part > 255)) return null;
  const value = parts.reduce((sum, part) => sum * 256 + part, 0);
  const size = 2 ** (32 - bits);
  const first = Math.floor(value / size) * size;
  return `${[24, 16, 8, 0].map((shift) => Math.floor(first / 2 ** shift) % 256).join('.')}/${bits}`;
}

/** A bind mount of a container; both paths absolute. */
export interface Volume {
  readonly source: string;
  readonly target: string;
  readonly readOnly: boolean;
}

const volumePattern = /^\/[^:]*:\/[^:]*(?::(?:ro|rw))?$/;

/**
 * Reads `/host/path:/container/path[:ro|rw]`.
 * @returns null for another form, for a path with a `..` part (it could leave an allowed directory) and for a mount over
 * the container's root
 */
export function parseVolume(written: string): Volume | null {
  if (!volumePattern.test(written)) return null;
  const [source = '', target = '', mode = 'rw'] = written.split(':');
  if ([source, target].some((path) => path.split('/').includes('..'))) return null;
  if (/^\/+$/.test(target)) return null;
  return { source, target, readOnly: mode === 'ro' };
}

export function formatVolume(volume: Volume): string {
  return `${volume.source}:${volume.target}${volume.readOnly ? ':ro' : ''}`;
}

export const networkOrInterface = text(networkPattern, networkForm, {
  suggest: networkOfAddress,
  refine: [isNetwork, networkForm],
});

const volume = text(volumePattern, 'two absolute paths, such as /data:/data or /data:/data:ro', {
  refine: [
    (written) => parseVolume(written) !== null,
    'two absolute paths without ".." parts, the second not "/", such as /data:/data:ro',
  ],
});

export const volumeList = listOf(
  {
    ...volume,
    read: (written): Volume => {
      const parsed = parseVolume(written);
      if (parsed === null) throw new TypeError(`not a checked job spec: invalid volume ${written}`);
      return parsed;
    },
    write: formatVolume,
  },
  'a list such as [/data:/data:ro]',
);

/** A secret of the job's project, and how its tasks get it. */
export interface SecretUse {
  readonly name: string;
  /** The variable that holds it. null: none does, and it is a file in $MUSTER_SECRETS_DIR. */
  readonly variable: string | null;
}

const secretForm = 'a secret: NAME for a file, or VARIABLE=NAME for a variable';
const variablePattern = /^[A-Za-z_][A-Za-z0-9_]{0,254}$/;

/** null: another form. */
function parseSecretUse(written: string): SecretUse | null {
  const at = written.indexOf('=');
  const use = { name: written.slice(at + 1), variable: at < 0 ? null : written.slice(0, at) };
  const isVariable = use.variable === null || variablePattern.test(use.variable);
  return isVariable && isSecretName(use.name) ? use : null;
}

export const secretList = listOf(
  {
    ...text(/^/, secretForm, { refine: [(written) => parseSecretUse(written) !== null, secretForm] }),
    read: (written): SecretUse => {
      const parsed = parseSecretUse(written);
      if (parsed === null) throw new TypeError(`not a checked job spec: invalid secret ${written}`);
      return parsed;
    },
    write: ({ name, variable }) => (variable === null ? name : `${variable}=${name}`),
  },
  'a list such as [ssh-key, WANDB_API_KEY=wandb]',
  [100, 'at most 100 secrets'],
);

export const dependencyList = listOf(
  { ...text(afterPattern, afterForm), read: (written) => formatDependency(parseDependency(written)) },
  'a list of jobs, such as [prepare] or [job_0123456789ab:any]',
  [100, 'at most 100 jobs'],
);

/** A mapping whose names are the user's. */
function pairs<Value extends WrittenText, Written extends WrittenText>(options: {
  readonly form: string;
  readonly names: readonly [RegExp, string];
  readonly values: ValueKind<unknown, unknown>['check'];
  readonly read: (written: Written) => Value;
  readonly isText?: boolean;
  readonly isCopiedByName?: boolean;
  readonly readFlag?: (typed: string) => FlagReading;
}): ValueKind<Readonly<Record<string, Value>>, Readonly<Record<string, Written | Value>>> {
  const { form, names, values, read, ...rest } = options;
  return {
    check: (z) => z.record(z.string().regex(names[0], { error: names[1] }), values(z), { error: form }),
    form,
    read: (written) =>
      Object.fromEntries(Object.entries(written).map(([name, value]) => [name, read(value as Written)])),
    write: (value) => ({ ...value }),
    flagForm: 'pairs',
    ...rest,
  };
}

export const variablePairs = pairs({
  form: 'a mapping such as {WANDB_PROJECT: demo}',
  names: [variablePattern, 'a variable name: letters, digits and "_", not starting with a digit'],
  values: writtenText,
  read: (written: WrittenText) => String(written),
  isText: true,
  isCopiedByName: true,
});

export const parameterPairs = pairs({
  form: 'a mapping such as {batch_size: 32, lr: 3e-4}',
  names: [/^[A-Za-z_][A-Za-z0-9_]{0,63}$/, 'a name of letters, digits and "_"'],
  values: (z) => {
    const error = 'text or a number';
    return z.union([argument(z), z.number({ error })], { error });
  },
  read: (written: string | number) => written,
  // `3e-4` is a number as well, which can be scaled.
  readFlag: (typed) => {
    return { value: /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(typed) ? Number(typed) : typed };
  },
});

export const labelPairs = pairs({
  form: 'a mapping such as {type: training}',
  names: [
    /^[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?$/,
    'a label name: 1 to 63 letters, digits, ".", "_", "/" or "-"',
  ],
  values: (z) => {
    const error = 'text of one line, at most 256 characters';
    return z.union([z.string({ error }).regex(/^\P{Cc}{0,256}$/u, { error }), z.number(), z.boolean()], {
      error,
    });
  },
  read: (written: WrittenText) => String(written),
  isText: true,
});
