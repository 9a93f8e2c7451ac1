/** A machine as `ssh` is told to reach it. Pure. */
import { usageError } from '../errors.ts';

export interface SshTarget {
  /** As it was typed, which is what `ssh` gets: `[user@]host`, where host may be a name from its configuration. */
  readonly text: string;
  /** Without the user. */
  readonly host: string;
}

/** Neither a flag nor anything that a shell or a unit of systemd would take for more than a word. */
const targetPattern = /^(?:[A-Za-z0-9_][A-Za-z0-9_.-]*@)?([A-Za-z0-9_:][A-Za-z0-9_.:-]*)$/;

/** @throws {CliError} for anything but `[user@]host` */
export function parseTarget(typed: string): SshTarget {
  const host = targetPattern.exec(typed)?.[1];
  if (host !== undefined) return { text: typed, host };
  throw usageError(
    `"${typed}" is not a host; expected [USER@]HOST, such as root@gpu-1`,
    'A port, a key or a jump host belongs into ~/.ssh/config: Host gpu-1, with HostName, Port, ProxyJump.',
  );
}
