/** A machine that scripts run on, as the user that logs in or as root. */
import { CliError } from '../errors.ts';
import { shellText } from '../output/text.ts';
import { runOverSsh, type SshCall, type SshOutcome, type SshPrograms } from './ssh.ts';
import type { SshTarget } from './sshTarget.ts';

export interface RemoteShell {
  /** For sentences. */
  readonly host: string;
  /** @throws {CliError} when there is no connection, or it broke */
  run(script: string, call?: SshCall): Promise<SshOutcome>;
  /** The same. @throws {CliError} also when the script fails, with its error output */
  must(script: string, call?: SshCall): Promise<SshOutcome>;
  /** The same machine as root, by `sudo` where that is needed. */
  elevated(sudo: boolean): RemoteShell;
}

export function openRemoteShell(
  target: SshTarget,
  programs: SshPrograms,
  signal: AbortSignal,
  sudo = false,
): RemoteShell {
  const run = (script: string, call: SshCall = {}) => {
    const whole = sudo ? shellText(['sudo', '-n', 'sh', '-c', script]) : script;
    return runOverSsh(target, whole, programs, { signal, ...call });
  };
  return {
    host: target.host,
    run,
    async must(script, call) {
      const outcome = await run(script, call);
      if (outcome.exitCode === 0) return outcome;
      throw remoteFailure(target, outcome);
    },
    elevated: (withSudo) => openRemoteShell(target, programs, signal, withSudo),
  };
}

/** `muster` there has put it into a sentence with its hints; other programs have left a line. */
function remoteFailure({ host }: SshTarget, { stderr, exitCode }: SshOutcome): CliError {
  const lines = stderr.split('\n').filter((line) => line.trim() !== '');
  const start = lines.findLastIndex((line) => line.startsWith('muster: '));
  if (start < 0) return new CliError(`${host}: ${lines.at(-1)?.trim() ?? `exit code ${exitCode}`}`);
  const [sentence = '', ...hints] = lines.slice(start);
  return new CliError(`${host}: ${sentence.replace('muster: ', '')}`, { hints });
}
