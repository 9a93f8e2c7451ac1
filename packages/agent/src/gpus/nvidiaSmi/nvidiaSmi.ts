/**
 * nvidia-smi as a program that answers or fails. It reports a failure as plain text on stdout, in place of CSV or XML. Its
 * exit status shows less (it is often 0) and is ignored where there is a text.
 */
import type { Program } from '../../host/program.ts';
import { type GpuProblem, nodeProblem } from '../gpuSource.ts';
import { type CellFault, readPciBusId } from './cells.ts';

export type Reply =
  /** Its reader decides whether it is an answer or a failure: the exit status does not show that. */
  | {
      readonly kind: 'printed';
      readonly text: string;
      readonly status: number | null;
      readonly stderr: string;
    }
  /** Nothing that could be read; asking once more would not help either. */
  | { readonly kind: 'no_answer'; readonly problem: GpuProblem };

/** The program, with its endings as sentences. */
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

  /** The failure in a reply that its reader did not understand. */
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

/** How much of the node a failure speaks for. */
export type SmiFailure =
  /** The driver itself: asking again for one card makes no difference. */
  | { readonly scope: 'driver'; readonly problem: GpuProblem }
  /** One card; it may well have hidden the others, which answer when asked one by one. */
  | { readonly scope: 'card'; readonly problem: GpuProblem }
  /** The driver works and has no card to show. */
  | { readonly scope: 'no_devices'; readonly problem: GpuProblem };

const evidenceLengthMax = 300;

/** The beginning of an output, on one line, fit for a terminal. */
export function excerpt(text: string): string {
  const line = text
    .slice(0, 4 * evidenceLengthMax)
    .replaceAll(/[\p{Cc}\p{Bidi_Control}\p{Cn}\uFFFD]+/gu, ' ')
    .trim();
  return line.length > evidenceLengthMax ? `${line.slice(0, evidenceLengthMax)} …` : line;
}

/** A problem of the node as a whole, or of a card that the caller fills in. */
export function smiProblem(kind: GpuProblem['kind'], message: string, evidence: string): GpuProblem {
  return nodeProblem(kind, message, excerpt(evidence));
}

const driverFailures: readonly {
  readonly pattern: RegExp;
  readonly kind: GpuProblem['kind'];
  readonly message: string;
}[] = [
  {
    pattern:
      /^(?:NVIDIA-SMI has failed because it couldn't communicate|Failed to initialize NVML: Driver Not Loaded)/im,
    kind: 'driver_not_loaded',
    message:
      'The NVIDIA kernel module of this node is not loaded; load it with `modprobe nvidia`, or reinstall the driver for the running kernel.',
  },
  {
    pattern: /^Failed to initialize NVML: Driver\/library version mismatch/im,
    kind: 'driver_mismatch',
    message:
      'The NVIDIA library of this node has another version than its loaded kernel module; reload the module or reboot the node.',
  },
  {
    pattern:
      /^Failed to initialize NVML: (?:Insufficient Permissions|GPU access blocked by the operating system)/im,
    kind: 'no_permission',
    message:
      'The agent may not open the devices /dev/nvidia* of this node; give its user or its service access to them.',
  },
  {
    pattern: /^Failed to initialize NVML: Unknown Error/im,
    kind: 'no_permission',
    message:
      'NVML cannot be initialised on this node, mostly because a container lost its right to the GPU devices ' +
      '(after a systemd daemon-reload); restart the container, or else look at the kernel log.',
  },
  {
    pattern: /^(?:Failed to initialize NVML|NVIDIA-SMI has failed)/im,
    kind: 'unknown_error',
    message: 'The NVIDIA driver of this node fails; the kernel log (`dmesg | grep NVRM`) says why.',
  },
];

const deadCard =
  /^Unable to determine the device handle for gpu *(?:\d+: +)?([0-9a-f:.]{1,40})?:? *([^\r\n]{0,200})/im;

/** The name of a failing card in messages. */
function cardName(pciBusId: string | null): string {
  return pciBusId === null ? 'A GPU of this node' : `The GPU at ${pciBusId}`;
}

export function cardProblem(
  fault: CellFault,
  card: { readonly uuid: string | null; readonly pciBusId: string | null },
  evidence: string,
): GpuProblem {
  const remedies: Readonly<Record<CellFault, string>> = {
    lost: 'no longer answers its driver; look for Xid 79 in the kernel log and reboot the node',
    reset_required: 'has to be reset before it can be used: `nvidia-smi --gpu-reset` when nothing runs on it',
    unknown_error:
      'cannot be read in part; if it lasts, look at the kernel log and reset the GPU when it is idle',
  };
  const message = `${cardName(card.pciBusId)} ${remedies[fault]}.`;
  return { kind: fault, gpuUuid: card.uuid, pciBusId: card.pciBusId, message, evidence: excerpt(evidence) };
}

/** null: the text is no failure that nvidia-smi is known for. */
export function failureIn(text: string): SmiFailure | null {
  if (/^No devices were found/im.test(text)) {
    const message =
      'The NVIDIA driver of this node works but has no GPU to show: all are lost, or none was given to this container; look for Xid 79 in the kernel log.';
    return { scope: 'no_devices', problem: smiProblem('lost', message, text) };
  }
  const card = deadCard.exec(text);
  if (card !== null) {
    const pciBusId = readPciBusId(card[1]?.replace(/:$/, ''));
    const fault = /requires reset/i.test(card[2] ?? '') ? 'reset_required' : 'lost';
    return { scope: 'card', problem: cardProblem(fault, { uuid: null, pciBusId }, card[0]) };
  }
  const known = driverFailures.find(({ pattern }) => pattern.test(text));
  return known === undefined
    ? null
    : { scope: 'driver', problem: smiProblem(known.kind, known.message, text) };
}

/** The field that this nvidia-smi does not know: one of them fails the whole query. */
export function unknownFieldIn(text: string): string | null {
  return /^Field "([^"\r\n]{1,200})" is not a valid field to query/im.exec(text)?.[1] ?? null;
}
