/** What the exit status of `muster` tells a script. Part of the public contract: never renumbered. */
export const exitCodes = {
  ok: 0,
  /** The job a command waited for failed or was cancelled. */
  jobFailed: 1,
  /** A daemon ended for a reason nobody foresaw; it shares its number with the above, as nobody waits for a job there. */
  daemonFailed: 1,
  /** `muster doctor` found something that needs mending. */
  problemFound: 1,
  /** Wrong flags, arguments or job spec: the same call fails again. */
  usage: 2,
  /** No coordinator answers, or it refused. */
  refused: 3,
  /** Ctrl-C ended the watching, not the job; 128 + SIGINT as shells count. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof exitCodes)[keyof typeof exitCodes];
