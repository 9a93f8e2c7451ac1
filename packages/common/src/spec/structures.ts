/** Kinds of settings that have a structure of their own. Each occurs once in the table of `fields.ts`. */
import { arrayForm, formatArray, type JobArraySpec, parseArray } from './array.ts';
import { type RetryableCause, retryableCauses } from './causes.ts';
import {
  argument,
  checkFields,
  choice,
  dayMs,
  duration,
  type FileOf,
  field,
  mapping,
  number,
  optional,
  readFields,
  readNumberFlag,
  required,
  type SpecFields,
  type SpecOf,
  secondMs,
  suggestBoolean,
  suggestNumber,
  type ValueKind,
  type WrittenText,
  wholeNumber,
  writeFields,
  writtenText,
} from './kinds.ts';

const commandForm = 'a list such as [torchrun, train.py], or text for the shell';

/**
 * A list is argv. Text goes to the shell, and arguments follow as its positional parameters: the word after the script is `$0`, and
 * without it the first argument would be swallowed as that.
 */
export const commandLine: ValueKind<readonly string[], string | readonly WrittenText[]> = {
  check: (z) => {
    const error = commandForm;
    return z.union([argument(z).regex(/\S/, { error }), z.array(writtenText(z))], { error });
  },
  form: commandForm,
  read: (written, { args }) => {
    if (typeof written !== 'string') return written.map(String);
    const hasArgs = Array.isArray(args) && args.length > 0;
    return hasArgs ? ['/bin/sh', '-c', written, 'sh'] : ['/bin/sh', '-c', written];
  },
  write: (value) => [...value],
  isText: true,
};

const umaskForm = 'octal digits in quotes, such as "0027"';

/** 0 to 0o777; octal digits in the file. */
export const fileModeMask: ValueKind<number, string> = {
  check: (z) => z.string({ error: umaskForm }).regex(/^0?[0-7]{3}$/, { error: umaskForm }),
  form: umaskForm,
  read: (written) => Number.parseInt(written, 8),
  write: (value) => value.toString(8).padStart(4, '0'),
};

const nodeCountMax = 1_024;
const nodeCountForm = `a whole number from 1 to ${nodeCountMax}`;
const nodesForm = `${nodeCountForm}, or a range such as {min: 1, max: 4}`;
const nodeRangeFields = {
  min: required('min', wholeNumber(1, nodeCountMax), { about: 'The smallest acceptable number of nodes.' }),
  max: required('max', wholeNumber(1, nodeCountMax), { about: 'The largest useful number of nodes.' }),
};
type NodeRange = SpecOf<typeof nodeRangeFields>;

/** A number of nodes, which is a range whose ends are equal, or a range. */
export const nodeCount: ValueKind<NodeRange, number | NodeRange> = {
  check: (z) =>
    z.union([wholeNumber(1, nodeCountMax).check(z), mapping(nodeRangeFields, nodesForm).check(z)], {
      // The problem of a number mentions numbers only.
      error: ({ input }) => (typeof input === 'number' ? nodeCountForm : nodesForm),
    }),
  form: nodesForm,
  read: (written) => (typeof written === 'number' ? { min: written, max: written } : written),
  write: ({ min, max }) => (min === max ? max : { min, max }),
  fields: nodeRangeFields,
  suggest: (written) => {
    const range = parseNodeRange(written);
    return range === null ? suggestNumber(written) : `{min: ${range.min}, max: ${range.max}}`;
  },
  readFlag: (typed) => {
    const range = parseNodeRange(typed);
    if (range !== null) return { value: range };
    const reading = readNumberFlag(typed);
    return reading.value === typed
      ? { got: typed, expected: `${nodeCountForm}, or a range such as 1:4` }
      : reading;
  },
};

/** `1:4`, `1-4` or `1..4`. null: another form. The schema checks the numbers. */
function parseNodeRange(typed: string): NodeRange | null {
  const [, min, max] = /^\s*(\d{1,6})\s*(?:[:-]|\.\.)\s*(\d{1,6})\s*$/.exec(typed) ?? [];
  return min === undefined || max === undefined ? null : { min: Number(min), max: Number(max) };
}

/** A mapping one of whose settings, `nodes`, is two values to Muster. */
export function withNodeCounts<Value extends { readonly nodes: NodeRange }, Written>({
  read,
  write,
  ...kind
}: ValueKind<Value, Written>) {
  return {
    ...kind,
    read: (written: Written, file: Readonly<Record<string, unknown>>) => {
      const { nodes, ...rest } = read(written, file);
      return {
        ...rest,
        /** As many as the job wants at once, 1..1024. */
        nodes: nodes.max,
        /** As few as will do, 1..`nodes`. Less than `nodes`: an attempt takes what fits. */
        minNodes: nodes.min,
      };
    },
    write: ({ nodes, minNodes, ...rest }: Omit<Value, 'nodes'> & NodeCounts) =>
      write({ ...rest, nodes: { min: minNodes, max: nodes } } as unknown as Value),
  };
}

interface NodeCounts {
  readonly nodes: number;
  readonly minNodes: number;
}

const gpuModelForm = 'a GPU model such as H100, or a list such as [H100, A100]';

/** Any of these models will do; empty: every model. */
export const gpuModels: ValueKind<readonly string[], string | readonly string[]> = {
  check: (z) => {
    const error = gpuModelForm;
    const model = z.string({ error }).regex(/^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$/, { error });
    return z.union([model, z.array(model).min(1, { error: 'at least one GPU model' })], { error });
  },
  form: gpuModelForm,
  read: (written) => (typeof written === 'string' ? [written] : [...new Set(written)]),
  write: (value) => [...value],
  isText: true,
  flagForm: 'list',
};

const bandwidthForm = 'Mbit/s, a number from 1 to 10000000, such as 10000';
const preflightForm = 'true, false, or {min_bandwidth_mbps: 10000}';
const preflightFields = {
  minBandwidthMbps: optional('min_bandwidth_mbps', number([1, 10_000_000], bandwidthForm), {
    about:
      'Minimum Mbit/s between each pair of nodes; a slower pair is reported and the next attempt avoids it.',
    aliases: ['minbandwidth'],
  }),
};

/** `true` measures only. */
export const preflightChoice: ValueKind<
  SpecOf<typeof preflightFields> | null,
  boolean | FileOf<typeof preflightFields>
> = {
  check: (z) =>
    z.union([z.boolean(), mapping(preflightFields, preflightForm).check(z)], { error: preflightForm }),
  form: preflightForm,
  read: (written) => {
    if (typeof written === 'boolean') return written ? readFields(preflightFields, {}) : null;
    return readFields(preflightFields, written);
  },
  write: (value) =>
    value === null ? false : value.minBandwidthMbps === null ? true : writeFields(preflightFields, value),
  fields: preflightFields,
  suggest: suggestBoolean,
  flagForm: 'switch',
};

const hangForm = 'warn, restart, or a mapping such as {action: restart, times: 10, at_least: 5m}';
const hangFields = {
  action: required('action', choice(['warn', 'restart']), { about: 'What to do about a hang.' }),
  times: field('times', wholeNumber(2, 1_000), {
    default: 10,
    about: 'No activity for this many times the usual interval.',
  }),
  atLeastMs: field('at_least', duration(secondMs, dayMs), {
    default: 300_000,
    about: 'And at least for this long.',
  }),
};
type HangAction = SpecOf<typeof hangFields>['action'];

/** `restart`: the attempt ends as hung, and the next one resumes from the last checkpoint. */
export const hangReaction: ValueKind<SpecOf<typeof hangFields>, HangAction | FileOf<typeof hangFields>> = {
  check: (z) =>
    z.union([z.enum(['warn', 'restart'], { error: hangForm }), mapping(hangFields, hangForm).check(z)], {
      error: hangForm,
    }),
  form: hangForm,
  read: (written) => readFields(hangFields, typeof written === 'string' ? { action: written } : written),
  write: (value) => {
    const written = writeFields(hangFields, value);
    return Object.keys(written).length > 1 ? written : value.action;
  },
  fields: hangFields,
  words: ['warn', 'restart'],
};

const backoffFields = {
  initialMs: field('initial', duration(0, dayMs), {
    default: 2_000,
    isAlwaysWritten: true,
    about: 'Wait before the second attempt; doubles with each further one.',
  }),
  maxMs: field('max', duration(0, dayMs), {
    default: 60_000,
    isAlwaysWritten: true,
    about: 'Longest wait between two attempts.',
  }),
};

/** A user who sets one of the two to the far side of the other's default means "always this long". */
export const backoff: ValueKind<SpecOf<typeof backoffFields>, FileOf<typeof backoffFields>> = {
  ...mapping(backoffFields, 'a mapping such as {initial: 2s, max: 60s}'),
  read: (written) => {
    const { initialMs, maxMs } = readFields(backoffFields, written);
    if (written.initial === undefined) return { initialMs: Math.min(initialMs, maxMs), maxMs };
    return { initialMs, maxMs: written.max === undefined ? Math.max(maxMs, initialMs) : maxMs };
  },
};

export const retryCauses: ValueKind<readonly RetryableCause[], readonly RetryableCause[]> = {
  check: (z) => {
    const cause = z.enum(retryableCauses, {
      error: ({ input }) => {
        if (input === 'cancelled') return 'to omit it: a cancelled job is not retried';
        if (input === 'preempted') return 'to omit it: a preempted job returns to the queue automatically';
        return `one of ${retryableCauses.join(', ')}`;
      },
    });
    return z.array(cause, { error: 'a list of causes, such as [node_lost, nccl_timeout]' });
  },
  form: 'a list of causes, such as [node_lost, nccl_timeout]',
  read: (written) => [...new Set(written)],
  write: (value) => [...value],
};

/** The indexes of an array of jobs. */
export const arrayIndexes: ValueKind<JobArraySpec, string | number> = {
  check: (z) =>
    z.union([z.string(), z.number()], { error: arrayForm }).superRefine((written, context) => {
      const reading = parseArray(written);
      if ('expected' in reading) context.addIssue({ code: 'custom', message: reading.expected });
    }),
  form: arrayForm,
  read: (written) => {
    const reading = parseArray(written);
    if ('array' in reading) return reading.array;
    throw new TypeError(`not a checked job spec: array ${written}`);
  },
  write: formatArray,
};

/** A list of mappings with these settings. @param form such as `a list of phases` @param most how many it can have */
export function mappingList<Fields extends SpecFields>(
  fields: Fields,
  form: string,
  most: number,
): ValueKind<readonly SpecOf<Fields>[], readonly FileOf<Fields>[]> {
  const itemForm = `${form}; each is a mapping`;
  return {
    check: (z) => {
      return z
        .array(checkFields(z, fields, itemForm), { error: form })
        .max(most, { error: `${form}, at most ${most}` });
    },
    form,
    read: (written) => written.map((each) => readFields(fields, each)),
    write: (value) => value.map((each) => writeFields(fields, each)),
    fields,
  };
}
