/**
 * The reports of launchers and shells about processes that have ended: torchrun, DeepSpeed's launcher, srun, bash. torchrun prints
 * `failed (exitcode: 1) local_rank: 0 (pid: 67) of binary: …` as soon as it has seen a worker fail; its summary comes later,
 * or never, if it is ended before.
 */
import { type FailureFinding, finding } from './finding.ts';

/** The end of one process, as a launcher, a shell or Slurm reports it. */
export interface ReportedExit {
  readonly line: number;
  readonly text: string;
  /** The global rank. null: it is not in the report. */
  readonly rank: number | null;
  /** Negative: the signal. */
  readonly code: number;
  /** The end as a text. */
  readonly how: string;
}

const summaryTitle = 'Root Cause (first observed failure)';
/** How torchrun names a worker that has failed, at once. */
export const workerExitLine =
  /failed \(exitcode: (-?\d{1,10})\) local_rank: (\d{1,10}) \(pid: \d{1,10}\) of (?:binary|fn): /;
const launcherReturn = /exits with return code = (-?\d{1,10})/;
const srunExit =
  /^srun: error: \S{1,1000}: tasks? ([\d,-]{1,4000}): (?:Exited with exit code (\d{1,10})|(Killed|Segmentation fault|Aborted|Bus error|Terminated))/;
/** bash, and the last line of Python itself. */
const shellExit =
  /(?:: line \d{1,9}: {1,20}\d{1,10} |^Fatal Python error: )(Killed|Segmentation fault|Aborted|Bus error|Terminated)\b/;

const signalNumbers: Readonly<Record<string, number>> = {
  Aborted: 6,
  'Bus error': 7,
  Killed: 9,
  'Segmentation fault': 11,
  Terminated: 15,
};

export function readReportedExit(text: string, line: number): ReportedExit | null {
  const worker = workerExitLine.exec(text);
  if (worker !== null) {
    const code = Number(worker[1]);
    return { line, text, rank: null, code, how: `local rank ${worker[2]}: ${codeText(code)}` };
  }
  const returned = launcherReturn.exec(text);
  if (returned !== null) {
    const code = Number(returned[1]);
    return code === 0 ? null : { line, text, rank: null, code, how: codeText(code) };
  }
  const task = srunExit.exec(text);
  if (task !== null) {
    const code = task[2] === undefined ? -(signalNumbers[task[3] ?? ''] ?? 0) : Number(task[2]);
    const rank = /^\d+$/.test(task[1] ?? '') ? Number(task[1]) : null;
    return { line, text, rank, code, how: codeText(code) };
  }
  const shell = shellExit.exec(text);
  if (shell === null) return null;
  const code = -(signalNumbers[shell[1] ?? ''] ?? 0);
  return { line, text, rank: null, code, how: codeText(code) };
}

export const exitHints = [
  '(exitcode:',
  'return code',
  'srun: error',
  ': line ',
  'Fatal Python',
  summaryTitle,
] as const;

/** The signal by its name, with the process; an exit code does not show them. */
const killedWorker = /signal \d{1,3} \(SIG\w{1,10}\) received by pid \d/i;

/** Reads torchrun's summary, line by line: `rank : 1 (local_rank: 1)`, `exitcode : -9 (pid: 123)`, `traceback : Signal 9 …`. */
export class SummaryReader {
  private linesLeft = 0;
  private rank: number | null = null;
  private exit: { readonly line: number; readonly text: string; readonly code: number } | null = null;

  /** @returns the exit that the summary reports, once its last field has been read */
  read(text: string, line: number): ReportedExit | null {
    if (text.includes(summaryTitle)) {
      this.linesLeft = 14;
      this.rank = null;
      this.exit = null;
      return null;
    }
    this.linesLeft -= 1;
    const [, name, value = ''] =
      /^\s{0,20}(rank|exitcode|traceback)\s{0,20}:\s{0,20}(.{0,1000})/.exec(text) ?? [];
    const number = /^-?\d{1,10}/.exec(value);
    if (name === 'rank' && number !== null) this.rank = Number(number[0]);
    if (name === 'exitcode' && number !== null) this.exit = { line, text, code: Number(number[0]) };
    if (name !== 'traceback' || this.exit === null) return null;
    this.linesLeft = 0;
    const { rank, exit } = this;
    const how = killedWorker.test(value) ? value : `exit code ${exit.code}`;
    return { ...exit, rank, how: rank === null ? how : `rank ${rank}: ${how}` };
  }

  get open(): boolean {
    return this.linesLeft > 0;
  }

  opensWith(text: string): boolean {
    return text.includes(summaryTitle);
  }
}

/** The cause that an exit code or a signal alone can show. */
export function exitFinding({ line, text, rank, code, how }: ReportedExit): FailureFinding {
  const evidence = { line, text: text.trim().slice(0, 500), rank };
  const about = { strength: 'exit', evidence, message: how.slice(0, 500) } as const;
  switch (code) {
    // How a launcher ends the processes beside the one that failed, and how all of it is ended.
    case -15:
    case -2:
      return finding({ ...about, kind: 'stopped_by_signal', strength: 'stop', consequence: true });
    case -9:
      return finding({
        ...about,
        kind: 'host_oom',
        advice:
          'It was killed, probably by the kernel because memory ran out: compare its use with resources.memory_mb, or find out who else may have killed it.',
      });
    case -7:
      return finding({
        ...about,
        kind: 'shm_exhausted',
        advice:
          'It died of a bus error, probably because shared memory ran out: raise resources.shm_mb in the spec, or use fewer data loader workers.',
      });
    default:
      return finding({ ...about, kind: 'exit_code' });
  }
}

/** Ended by a signal that a process does not send itself on its way out: it can have been the first to go. */
export function diedByItself(code: number): boolean {
  return [-4, -7, -8, -9, -11].includes(code);
}

function codeText(code: number): string {
  return code < 0 ? `ended by signal ${-code}` : `exit code ${code}`;
}
