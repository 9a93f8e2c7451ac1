/** What drivers, guard, fences and records know of a task that this node runs. */

/** Unique and stable name of a task: `<job id>.<attempt>.<node rank>`. Doubles as label, directory and cgroup name. */
export type TaskName = string;

/** Where a task lives on this node. `directory` is absolute, private to the task and exists before `start`. */
export interface TaskLocation {
  readonly key: TaskName;
  readonly directory: string;
}

/** How a task ended. Written once; the first record wins. */
export interface TaskExit {
  /** 0..255, or null when a signal ended the task or the status was lost. */
  readonly exitCode: number | null;
  /** `SIGKILL`, … when a signal ended the main process; else null. */
  readonly signal: string | null;
  /** The kernel's out-of-memory killer ended it (as far as the driver can tell). */
  readonly oomKilled: boolean;
  /** Wall clock, epoch milliseconds, for display only. null when nobody saw the end. */
  readonly finishedAtMs: number | null;
  /** CLOCK_BOOTTIME of that moment, of this boot. Absent when nobody who could tell saw it as it happened. */
  readonly finishedBoottimeMs?: number;
  /** The processes are gone and nobody kept the status: guard killed, node rebooted. Exit code and signal are null. */
  readonly statusLost: boolean;
}

export type TaskObservation =
  | { readonly kind: 'absent' }
  | {
      readonly kind: 'running';
      readonly pid: number | null;
      readonly startedAtMs: number | null;
      /** No process of it runs an instruction. */
      readonly frozen: boolean;
    }
  | { readonly kind: 'exited'; readonly exit: TaskExit };

/** How long a task may run: until this moment, unless a later lease is given. */
export interface Lease {
  /** CLOCK_BOOTTIME, milliseconds, of the boot named in `bootId`. */
  readonly deadlineBoottimeMs: number;
  readonly bootId: string;
  /** What happens then. */
  readonly onExpiry: 'freeze' | 'kill';
}

export interface StopOptions {
  /** First signal, `SIGTERM` unless the job sets another. */
  readonly signal: string;
  /** From the first signal to SIGKILL, milliseconds, ≥ 0. */
  readonly graceMs: number;
}
