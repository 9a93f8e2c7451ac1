import type { Program } from '../../host/program.ts';
import type { GpuProblem } from '../gpuSource.ts';
import { excerpt, failureIn, type SmiFailure, smiProblem } from './errors.ts';

export type Reply =
  /** Whether it is an answer or a failure is for its reader to tell: the exit status does not. */
  | {
      readonly kind: 'printed';
      readonly text: string;
      readonly status: number | null;
      readonly stderr: string;
    }
  /** Nothing that could be read; asking once more would not help either. */
  | { readonly kind: 'no_answer'; readonly problem: GpuProblem };

/** The program, with its endings told in sentences. */
export class NvidiaSmi {
  private readonly program: Program;

  constructor(program: Program) {
    this.program = program;
  }

  /** @throws {Error} one sentence: the program could not be started at all */
  async ask(args: readonly string[], deadlineMs: number): Promise<Reply> {
    const { path } = this.program;
    const outcome = await this.program.run(args, deadlineMs);
    switch (outcome.kind) {
      case 'exited':
        return {
          kind: 'printed',
          text: outcome.stdout,
          status: outcome.status,
          stderr: outcome.stderr,
        };
      case 'hung':
        return noAnswer(
          'hung',
          `The NVIDIA driver of this node did not answer ${path} in time; if it lasts, look for Xids in the kernel log and reboot the node.`,
          `process ${outcome.pid} was killed after ${deadlineMs} ms`,
        );
      case 'stuck':
        return noAnswer(
          'hung',
          `The NVIDIA driver of this node holds ${path} in a call that does not end; look for Xids in the kernel log and reboot the node.`,
          `process ${outcome.pid} was killed and is still there; no other is started behind it`,
        );
      case 'too_long':
        return noAnswer(
          'unreadable',
          `${path} on this node prints without end; check that it is nvidia-smi.`,
          outcome.stdout,
        );
      case 'not_started':
        throw new Error(
          `${path} cannot be run on this node, since ${outcome.reason}; install the NVIDIA driver, or name the path with --nvidia-smi.`,
        );
      default: {
        const never: never = outcome;
        return never;
      }
    }
  }

  /** What a reply says that its reader did not understand. */
  failureOf(reply: Reply): SmiFailure {
    if (reply.kind === 'no_answer') return { scope: 'driver', problem: reply.problem };
    return failureIn(reply.text) ?? { scope: 'driver', problem: this.unreadable(reply) };
  }

  unreadable(reply: Extract<Reply, { kind: 'printed' }>): GpuProblem {
    const { text, status, stderr } = reply;
    const printed = excerpt(text.trim() === '' ? stderr : text);
    const evidence = `exit status ${status ?? 'none'}: ${printed === '' ? 'no output' : printed}`;
    const { path } = this.program;
    return status === 0
      ? smiProblem(
          'unreadable',
          `${path} on this node printed what the agent does not understand; run it there by hand, and check that it belongs to the driver.`,
          evidence,
        )
      : smiProblem(
          'unknown_error',
          `${path} fails on this node; run it there by hand, and fix what it reports.`,
          evidence,
        );
  }

  close(): Promise<void> {
    return this.program.close();
  }
}

function noAnswer(kind: GpuProblem['kind'], message: string, evidence: string): Reply {
  return { kind: 'no_answer', problem: smiProblem(kind, message, evidence) };
}
