/**
 * Exceptions of Python: `package.Error: message` in the first column, below a traceback. Programs also print exceptions that
 * they have dealt with, so that one alone does not prove a failure: see `FailureObservation.weak`.
 */
import type { CauseKind } from '@muster/common/spec/causes';
import type { Line } from '../model.ts';

export interface SeenException {
  readonly kind: Extract<CauseKind, 'import_error' | 'python_exception' | 'stopped_by_signal'>;
  readonly consequence: boolean;
  /** Nothing above it shows that the program did not deal with it. */
  readonly weak: boolean;
}

const named =
  /^((?:[A-Za-z_]\w{0,99}\.){0,12}[A-Za-z_]\w{0,99}(?:Error|Exception|Interrupt|Exit|Failure))(?:: |:?$)/;
/** Below a traceback, other names count too where a package stands before them: `queue.Empty`. */
const namedInPackage = /^(?:[a-z_]\w{0,99}\.){1,12}[A-Z]\w{0,99}(?::? |:?$)/;
/** These only report the failure of another process. */
const reporters = /(?:ChildFailedError|CalledProcessError|ProcessRaisedException|ProcessExitedException)\b/;

/** The errors of processes whose peer has ended. */
const consequences: readonly RegExp[] = [
  /connection (?:was )?(?:reset|closed|refused|aborted)(?: by (?:the )?(?:remote )?(?:peer|host))?/i,
  /broken pipe|socket closed|read error.{0,100} timed out|failed to recv, got 0 bytes|recvvalue failed/i,
  /remote process exit(?:ed|ing)|communicator was aborted/i,
  /some nccl operations have failed or timed out|application timeout caused pair closure/i,
  /is killed by signal: (?:Terminated|Aborted)/,
  /^(?:[\w.]{1,400}\.)?KeyboardInterrupt\b/,
];

const header = 'Traceback (most recent call last):';
/** Of a traceback whose header was cut off: as excerpts and the last part of a long output begin. */
const frameLine = /^\s{2,40}File ".{1,400}", line \d{1,7}, in /;
/** The exception comes within so many lines of its header, or it is another one's. */
const tracebackLinesMax = 400;
/** The lines above a traceback that was caught, or that does not end the program. */
const handledAbove =
  /\bWARN(?:ING)?\b|Exception ignored in|--- Logging error ---|^Exception in thread |exception was never retrieved/i;
/** Code of the last frames, for rules that ask where an exception comes from. */
const framesMax = 60;

export class ExceptionReader {
  /** Lines left in which a traceback that was begun ends. 0: none is open. */
  private linesLeft = 0;
  private handled = false;
  /** Its header was cut off, so that only an exception right below its frames ends it. */
  private isCutOff = false;
  private frames: string[] = [];

  /** @param previous the line before. @returns null: it is no exception, or only reports another one */
  read({ text, rank }: Line, previous: string): SeenException | null {
    if (text.includes(header)) {
      // In a chain, the line above the first of its tracebacks counts for all.
      if (this.linesLeft === 0) this.handled = handledAbove.test(previous);
      this.linesLeft = tracebackLinesMax;
      this.isCutOff = false;
      this.frames = [];
      return null;
    }
    if (this.linesLeft === 0 && frameLine.test(text)) {
      this.linesLeft = tracebackLinesMax;
      this.isCutOff = true;
      this.handled = false;
      this.frames = [];
    }
    const first = text.charCodeAt(0);
    if (this.linesLeft > 0) {
      this.linesLeft -= 1;
      if (first === 0x20 || first === 0x09) {
        if (this.frames.length === framesMax) this.frames.shift();
        this.frames.push(text);
        return null;
      }
    }
    const inTraceback = this.linesLeft > 0;
    const match = named.exec(text) ?? (inTraceback ? namedInPackage.exec(text) : null);
    if (match === null) {
      if (this.isCutOff) this.linesLeft = 0;
      return null;
    }
    this.linesLeft = 0;
    if (reporters.test(match[0])) return null;
    // PyTorch puts `[rank3]:` before nothing but what ends the process.
    const weak = rank === null && (!inTraceback || this.handled);
    return { kind: kindOf(match[0]), consequence: isConsequence(text), weak };
  }

  get open(): boolean {
    return this.linesLeft > 0;
  }

  /** The traceback that is open or was closed last has this. */
  isWithin(pattern: RegExp): boolean {
    return this.frames.some((frame) => pattern.test(frame));
  }

  /** A rule knows the exception: its traceback is over. */
  close(): { readonly handled: boolean } {
    const handled = this.linesLeft > 0 && this.handled;
    this.linesLeft = 0;
    return { handled };
  }
}

/** Whether this exception only follows from the end of another process. */
function isConsequence(text: string): boolean {
  return consequences.some((pattern) => pattern.test(text));
}

function kindOf(name: string): SeenException['kind'] {
  if (/^(?:ModuleNotFoundError|ImportError)\b/.test(name)) return 'import_error';
  return /^(?:[\w.]{1,400}\.)?KeyboardInterrupt\b/.test(name) ? 'stopped_by_signal' : 'python_exception';
}

export const exceptionHints = [
  'Traceback',
  'Error',
  'Exception',
  'Interrupt',
  'Exit',
  'Failure',
  'File "',
] as const;
