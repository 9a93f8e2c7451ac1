/** The flags of `muster submit` that describe the job. Values stay as typed: the job spec's own checks judge them. */
import { type SpecOverrides, specFlags } from '@muster/common/spec/overrides';
import type { Command } from 'commander';
import { collect } from '../flags.ts';

export function withSpecFlags(command: Command): Command {
  command.optionsGroup('The job (each wins over the file):');
  for (const { usage, help, isRepeated } of specFlags) {
    if (isRepeated) command.option(usage, help, collect);
    else command.option(usage, help);
  }
  return command;
}

/** @param commandLine what stands after `--`; null: no `--` */
export function overridesOf(flags: object, commandLine: readonly string[] | null): SpecOverrides {
  return { ...flags, command: commandLine ?? undefined };
}
