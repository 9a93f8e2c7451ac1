/**
 * What `{resume}` and the names of `params` stand for in command and args. All else in braces stays as it is: shells,
 * awk and JSON have theirs. Values of `env` are left alone; what a program wants from there it finds in
 * MUSTER_RESUME_FROM, MUSTER_BATCH_SCALE and MUSTER_LR_SCALE.
 *
 *     {resume}             the checkpoint to resume from; nothing on a first run
 *     {resume:--resume=}   the same with this prefix, or nothing at all
 *     {batch_size}         params.batch_size times the batch scale
 *     {muster_artifacts}   the directory of the artifacts of a task with some; also in values of env
 */
import { basename } from 'node:path';
import { type Scales, scaledParam } from '@muster/common/scales';
import { artifactsPlaceholder } from '@muster/common/spec/artifactFields';
import { placeholder } from '@muster/common/spec/placeholder';
import type { JobSpec } from '@muster/common/spec/types';

export interface PlaceholderValues extends Scales {
  /** As the job sees it. null: it begins from nothing. */
  readonly resumeFrom: string | null;
  /** The directory of its artifacts, as the job sees it. null: it has none. */
  readonly artifacts: string | null;
}

type Commands = Pick<JobSpec, 'command' | 'args' | 'params'>;

/** @returns command and args to start */
export function fillPlaceholders(
  { command, args, params }: Commands,
  values: PlaceholderValues,
): Pick<JobSpec, 'command' | 'args'> {
  const scriptAt = shellScriptAt(command);
  const fill = (argument: string, isShellText: boolean) =>
    filledArgument(argument, isShellText, params, values);
  return {
    command: command.flatMap((argument, index) => fill(argument, index === scriptAt)),
    // Those of a shell's script are its positional parameters, not shell text.
    args: args.flatMap((argument) => fill(argument, false)),
  };
}

/** @returns the variables of a task, with the directory of its artifacts */
export function fillVariables(env: JobSpec['env'], artifacts: string | null): JobSpec['env'] {
  if (artifacts === null) return env;
  const filled = Object.entries(env).map(([name, value]) => [
    name,
    value.replaceAll(artifactsPlaceholder, () => artifacts),
  ]);
  return Object.fromEntries(filled) as JobSpec['env'];
}

/** An argument that becomes empty is omitted: programs would take an empty argument for a file name. */
function filledArgument(
  argument: string,
  isShellText: boolean,
  params: JobSpec['params'],
  values: PlaceholderValues,
): readonly string[] {
  const filled = argument.replace(
    placeholder,
    (whole, name: string, words: string | undefined, at: number) => {
      if (name === 'resume') {
        if (values.resumeFrom === null) return '';
        const path = isShellText ? quotedAt(argument, at, values.resumeFrom) : values.resumeFrom;
        return `${words ?? ''}${path}`;
      }
      if (`{${name}}` === artifactsPlaceholder && values.artifacts !== null)
        return isShellText ? quotedAt(argument, at, values.artifacts) : values.artifacts;
      const value = words === undefined && Object.hasOwn(params, name) ? params[name] : undefined;
      return value === undefined ? whole : scaledParam(name, value, values);
    },
  );
  return filled === '' && argument !== '' && !isShellText ? [] : [filled];
}

const shells = new Set(['sh', 'bash', 'dash', 'ash', 'zsh', 'ksh']);

/** Which of the arguments is text for a shell. -1: none is. */
function shellScriptAt(command: readonly string[]): number {
  const [program = '', ...rest] = command;
  if (!shells.has(basename(program))) return -1;
  const flag = rest.findIndex((each) => /^-[a-z]*c$/.test(each));
  // Only flags come before it: else it belongs to a script that the shell runs.
  const isShells = flag !== -1 && rest.slice(0, flag).every((each) => each.startsWith('-'));
  return isShells ? flag + 2 : -1;
}

/**
 * @param text of a script, in which the value is going to stand at `at`
 * @returns the value, quoted as that place needs it: there may be quotes around it already
 */
function quotedAt(text: string, at: number, value: string): string {
  if (/^[\w./:=@%+,-]+$/.test(value)) return value;
  const quotes = quotesAt(text, at);
  if (quotes === 'double') return value.replace(/[\\"$`]/g, '\\$&');
  const within = value.replaceAll("'", String.raw`'\''`);
  return quotes === 'single' ? within : `'${within}'`;
}

/** Here-documents and substitutions within quotes are not distinguished: they count as the quotes around them. */
function quotesAt(text: string, at: number): 'none' | 'single' | 'double' {
  let quotes: 'none' | 'single' | 'double' = 'none';
  for (let index = 0; index < at; index += 1) {
    const letter = text[index];
    if (letter === '\\' && quotes !== 'single') index += 1;
    else if (letter === "'" && quotes !== 'double') quotes = quotes === 'single' ? 'none' : 'single';
    else if (letter === '"' && quotes !== 'single') quotes = quotes === 'double' ? 'none' : 'double';
  }
  return quotes;
}
