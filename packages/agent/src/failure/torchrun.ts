/** What a job's command says of its launcher. */
import type { JobSpec } from '@muster/common/spec/types';

const torchrunScript =
  /^\s*(?:exec\s+)?(?:(?:\S*\/)?torchrun|(?:\S*\/)?python[\d.]*\s+-m\s+torch\.distributed\.run)(?:\s[^;|&\n]*)?$/;

/** The command is torchrun and nothing else: a script around it may do whatever it likes when that has ended. */
export function isTorchrun({ launcher, command, args }: JobSpec): boolean {
  if (launcher !== 'torchrun') return false;
  const [program = '', flag, script] = [...command, ...args];
  const text = program === '/bin/sh' && flag === '-c' ? script : [...command, ...args].slice(0, 3).join(' ');
  return torchrunScript.test(text ?? '');
}
