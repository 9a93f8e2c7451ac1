/** `muster __complete`, which the completion scripts call at every press of Tab: what could stand where the cursor is. */
import { specFlags } from '@muster/common/spec/overrides';
import { isTerminal, jobStates } from '@muster/common/states';
import { jobMetrics } from '@muster/common/telemetry';
import { trainingMetrics } from '@muster/common/training';
import { type Argument, Command, type Option } from 'commander';
import { type CommandEntry, type Context, defineCommand } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { printable } from '../output/text.ts';
import { withSession } from '../session.ts';

export interface CompletionCandidate {
  readonly value: string;
  readonly description: string;
}

/** The shell completes file names itself. */
export const filesMarker = ':files';
const jobsOffered = 100;

/** @param words behind the command's name; the last one is being typed */
export async function candidatesFor(
  command: Command,
  words: readonly string[],
  context: Context,
): Promise<readonly CompletionCandidate[]> {
  const before = words.slice(0, -1);
  if (before.includes('--')) return files;
  const awaiting = optionAt(command, before.at(-1));
  if (awaiting !== undefined && takesValue(awaiting)) {
    const choices = command.name() === 'submit' ? wordsOfSetting(awaiting) : undefined;
    if (choices !== undefined) return wordCandidates(choices);
    return valuesFor(placeholderOf(awaiting), awaiting, command, context);
  }
  if (words.at(-1)?.startsWith('-')) {
    return command.options
      .filter((option) => option.long !== undefined && option.long !== null && !option.hidden)
      .map((option) => ({ value: option.long ?? '', description: option.description }));
  }
  const operands = before.filter((word, index) => isOperand(command, word, before[index - 1]));
  const argument = argumentAt(command, operands.length);
  if (argument === undefined) return [];
  const below = operands.length === 0 ? command.commands : [];
  return [
    ...below.map((each) => ({ value: each.name(), description: each.description() })),
    ...(await valuesFor(argument.name(), argument, command, context, operands)),
  ];
}

const files: readonly CompletionCandidate[] = [{ value: filesMarker, description: '' }];

function optionAt(command: Command, word: string | undefined): Option | undefined {
  return command.options.find(
    (option) => word !== undefined && (option.long === word || option.short === word),
  );
}

function takesValue(option: Option): boolean {
  return option.required || option.optional;
}

/** Of a setting of the job that takes one of a few words. */
function wordsOfSetting({ long }: Option): readonly string[] | undefined {
  return specFlags.find((flag) => flag.long === long)?.field.words;
}

/** `--state <state>` → `state`. */
function placeholderOf(option: Option): string {
  return /<([^>]+)>/.exec(option.flags)?.[1] ?? '';
}

/** Neither a flag nor the value of one. */
function isOperand(command: Command, word: string, previousWord: string | undefined): boolean {
  const previous = optionAt(command, previousWord);
  return !word.startsWith('-') && !(previous !== undefined && takesValue(previous));
}

/** The positional argument that comes next. */
function argumentAt(command: Command, position: number): Argument | undefined {
  const last = command.registeredArguments.at(-1);
  return command.registeredArguments[position] ?? (last?.variadic === true ? last : undefined);
}

async function valuesFor(
  placeholder: string,
  { argChoices }: { readonly argChoices?: readonly string[] },
  command: Command,
  context: Context,
  operands: readonly string[] = [],
): Promise<readonly CompletionCandidate[]> {
  if (argChoices !== undefined) return wordCandidates(argChoices);
  switch (placeholder) {
    case 'file':
    case 'dir':
    case 'path':
      return files;
    case 'state':
      return wordCandidates(jobStates);
    case 'job':
    case 'jobs':
      return fromCluster(context, () => jobCandidates(context, command.name() === 'stop'));
    case 'node':
      return fromCluster(context, () => nodeCandidates(context));
    case 'condition':
      return fromCluster(context, () => conditionCandidates(context, operands[0] ?? ''));
    case 'metric':
      return [
        ...Object.entries(trainingMetrics).map(([value, unit]) => ({ value, description: unit })),
        ...Object.entries(jobMetrics).map(([value, { unit }]) => ({ value, description: unit })),
      ];
    default:
      return [];
  }
}

function wordCandidates(words: readonly string[]): readonly CompletionCandidate[] {
  return words.map((value) => ({ value, description: '' }));
}

/** Without a coordinator there is nothing to offer, and no place to say why. */
async function fromCluster(
  { completionWaitMs }: Context,
  ask: () => Promise<readonly CompletionCandidate[]>,
): Promise<readonly CompletionCandidate[]> {
  const nothing = new Promise<readonly CompletionCandidate[]>((resolve) =>
    setTimeout(resolve, completionWaitMs, []).unref(),
  );
  return Promise.race([ask().catch(() => []), nothing]);
}

function jobCandidates(context: Context, onlyActive: boolean): Promise<readonly CompletionCandidate[]> {
  return withSession(context, {}, async ({ api }) => {
    const states = onlyActive ? jobStates.filter((state) => !isTerminal(state)) : [];
    const { jobs } = await api.listJobs({ states, limit: jobsOffered, brief: true });
    const ids = jobs.map(({ id, name, state }) => ({
      value: id,
      description: `${printable(name)}, ${state}`,
    }));
    // A name means the newest of its jobs.
    const names = [...new Map(jobs.toReversed().map((job) => [job.name, job] as const))];
    return [
      ...names.map(([value, { id, state }]) => ({ value: printable(value), description: `${id}, ${state}` })),
      ...ids,
    ];
  });
}

function nodeCandidates(context: Context): Promise<readonly CompletionCandidate[]> {
  return withSession(context, {}, async ({ api }) => {
    const nodes = await api.listNodes();
    return nodes.map(({ name, state }) => ({ value: name, description: state }));
  });
}

function conditionCandidates(context: Context, node: string): Promise<readonly CompletionCandidate[]> {
  return withSession(context, {}, async ({ api }) => {
    const { conditions } = await api.getNode(node);
    const messages = new Map(conditions.map(({ kind, message }) => [kind, message]));
    return Array.from(messages, ([value, message]) => ({ value, description: printable(message) }));
  });
}

/** @param marked the words up to the cursor, each behind a `:`, so that none of them looks like a flag of ours */
export async function complete(
  table: readonly CommandEntry[],
  marked: readonly string[],
  context: Context,
): Promise<ExitCode> {
  const words = marked.map((word) => word.replace(/^:/, ''));
  const current = words.at(-1) ?? '';
  const candidates = await candidatesAt(table, words, context);
  const lines = candidates
    .filter(({ value }) => value === filesMarker || value.startsWith(current))
    .map(({ value, description }) => (description === '' ? `${value}\n` : `${value}\t${description}\n`));
  await context.io.stdout.write(lines.join(''));
  return exitCodes.ok;
}

async function candidatesAt(
  table: readonly CommandEntry[],
  words: readonly string[],
  context: Context,
): Promise<readonly CompletionCandidate[]> {
  if (words.length <= 1) return table.map(({ name, summary }) => ({ value: name, description: summary }));
  const entry = table.find(({ name }) => name === words[0]);
  if (entry === undefined) return [];
  const command = new Command(entry.name);
  defineCommand(command, (await entry.load()).command);
  const below = command.commands.find((each) => each.name() === words[1]);
  return below === undefined || words.length <= 2
    ? candidatesFor(command, words.slice(1), context)
    : candidatesFor(below, words.slice(2), context);
}
