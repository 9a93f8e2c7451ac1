/**
 * The seam between the agent and whatever runs a task: bare processes or Docker containers.
 *
 * A driver recovers as well as it starts. The agent may be killed between any two instructions, so nothing about a
 * task lives only in the agent's memory: a driver finds its tasks again by key (guard, container label) and keeps the
 * exit status outside the agent. Every method is safe to call twice.
 */
import type { AccountIds, TaskAccount } from '../taskFacts/account.ts';
import type {
  Lease,
  StopOptions,
  TaskExit,
  TaskLocation,
  TaskName,
  TaskObservation,
} from '../taskFacts/execution.ts';

export interface GpuDevice {
  /** `GPU-…` or `MIG-…`; indexes change after a reset, UUIDs do not. */
  readonly uuid: string;
  /** Simulated GPUs are shown to the job in its environment, but no device is requested from the container engine. */
  readonly simulated: boolean;
}

export interface VolumeMount {
  readonly source: string;
  readonly target: string;
  readonly readOnly: boolean;
}

/** Everything a driver needs to start a task; it chooses nothing itself. */
export interface TaskLaunch extends TaskLocation {
  readonly image: string | null;
  /** argv; empty means the image's own entrypoint and command. Never empty without an image. */
  readonly command: readonly string[];
  /** The whole environment of the task (for a container: what is added to the image's). */
  readonly env: Readonly<Record<string, string>>;
  /** Absolute working directory; null: the home of its account, else the task's own directory (process) or the image's (container). */
  readonly workdir: string | null;
  /** null: a process runs as the agent, a container as the node's policy prescribes for the image's own user. */
  readonly account: TaskAccount | null;
  /** Of processes, 0 to 0o777. null: that of the node. */
  readonly umask: number | null;
  readonly gpus: readonly GpuDevice[];
  /** Limits. null: none. */
  readonly cpus: number | null;
  readonly memoryMb: number | null;
  readonly shmMb: number | null;
  readonly volumes: readonly VolumeMount[];
  /** What the agent itself mounts into a container, whatever the node's policy for the volumes of jobs. */
  readonly ownVolumes: readonly VolumeMount[];
  /** Absolute; made by a preparation where they are missing, as the user that the task runs as. Of containers only with an account. */
  readonly directories: readonly string[];
  /** Absolute, of the agent alone until the start, which gives them to the account. Empty without an account. */
  readonly ownDirectories: readonly string[];
  /** Absolute. A shell script that sets variables of the task which no container engine may know. Of containers. null: there are none. */
  readonly variablesFile: string | null;
  /** Absolute; the account alone can read them from the start on. Each is in a directory of one that is the agent's alone until then. */
  readonly ownFiles: readonly string[];
  /** Of containers. `host`: the node's own, where the ranks of a gang on other nodes find it. Processes always have that. */
  readonly network: 'host' | 'bridge';
  /** Armed before the first instruction runs; null: never fenced. */
  readonly lease: Lease | null;
}

export interface Driver {
  readonly name: 'process' | 'docker';

  /**
   * Does beforehand what may take long or fail: image pulled, volumes and working directory there, program found.
   * Starts nothing and holds nothing; may be called again, and takes a moment when all is there.
   * @param onDoing gets the progress as a text for users, such as `pulls image pytorch:24.01`
   * @throws {DriverError} with the cause to report
   */
  prepare(launch: TaskLaunch, onDoing: (what: string) => void, abort?: AbortSignal): Promise<void>;

  /**
   * Starts the task; resolves when its main process exists. Refused once the launch's lease has run out: a late command
   * starts nothing (`LeaseExpired`, and nothing ran). Output goes to `<directory>/output.log`, stdout and stderr
   * in the order they were written. A task that is already there under this key is left alone (start is idempotent).
   * @param abort gives the start up, a pull of many minutes too. It then rejects with the signal's reason, and nothing
   *   runs or is left behind. One that comes too late changes nothing: the task runs, and must be stopped.
   * @throws {DriverError} with the cause to report (`command_not_found`, `image_pull`, …); nothing is left behind.
   */
  start(launch: TaskLaunch, abort?: AbortSignal): Promise<void>;

  /** What is known of a task now. A restarted agent finds its tasks again by this. */
  recover(task: TaskLocation): Promise<TaskObservation>;

  /**
   * Resolves when the main process has ended AND no process of the task is left (stragglers are killed).
   * Works for recovered tasks too. Rejects with the signal's reason when aborted; the task is not touched by that.
   */
  wait(task: TaskLocation, abort: AbortSignal): Promise<TaskExit>;

  /** Its live processes as the kernel shows them, asking nobody else; null: it cannot be determined. */
  processes(task: TaskLocation): readonly number[] | null;

  /** Sends a signal to the task's processes. A task that has ended is not an error. */
  signal(task: TaskLocation, signal: string): Promise<void>;

  /** Signal, grace, SIGKILL to the whole tree, frozen or not; resolves like `wait`. An absent task resolves as `statusLost`. */
  stop(task: TaskLocation, options: StopOptions): Promise<TaskExit>;

  /** Forgets an ended task: container, cgroup, guard record. Keeps `<directory>/output.log`. Absent is fine. */
  remove(task: TaskLocation): Promise<void>;

  /** Keys of all tasks of this agent the driver knows, running or ended. */
  list(): Promise<readonly TaskName[]>;

  /** Ends the driver's own connections. Tasks keep running. */
  close(): Promise<void>;
}

/** A driver whose tasks can be fenced. */
export type TaskDriver = Driver & TaskFence;

/** Freezes and thaws the tasks of a driver. Every method is safe to call twice. */
export interface TaskFence {
  /**
   * Arms the second fence, which holds without this agent, without network and without container engine: at the lease's
   * deadline the node freezes or kills the task. A later lease replaces an earlier one, never the reverse.
   * null: never fenced. It does not thaw. A task that has ended is not an error.
   */
  renew(task: TaskLocation, lease: Lease | null): Promise<void>;

  /**
   * Resolves when no process of the task runs an instruction. Acts on the kernel's control group directly and asks
   * nobody; a task that does not freeze within a second is killed instead. One that has ended is not an error.
   * @returns `killed` when it had to be
   */
  freeze(task: TaskLocation): Promise<'frozen' | 'killed' | 'ended'>;

  /** Lets it run again. One that is not frozen, or has ended, is not an error. */
  thaw(task: TaskLocation): Promise<void>;
}

/** The fence that holds without the agent, for tasks that something else than the guard has started. `GuardClient` is one. */
export interface Fence {
  /**
   * At the lease's deadline what is in these control groups is frozen or killed, also what comes into them later. Of two
   * leases the later one counts.
   * @param lease null: never fenced
   * @param groups absolute paths; they need not exist yet
   */
  renew(task: TaskLocation, lease: Lease | null, groups: readonly string[]): Promise<void>;

  /** The task has ended, or will never begin. One that is not known is not an error. */
  forget(task: TaskLocation): Promise<void>;

  /**
   * Where each of these absolute paths leads, every link followed; null: it is not on the node. An agent in a sandbox does
   * not see all of the node; what holds the fence does, or it could not.
   */
  realPaths(paths: readonly string[]): Promise<readonly (string | null)[]>;

  /**
   * The ids that a container of this account runs as, so that the account owns what it writes to a mount.
   * @param launch its files are given to the account as at a start, and its directories are made as in a preparation
   * @throws {DriverError} when this node has no such account, or no task may run as it
   */
  accountIds(account: TaskAccount, launch: Pick<TaskLaunch, 'ownFiles' | 'directories'>): Promise<AccountIds>;
}
