/** Where a command's words go and where they come from. `processIo.ts` has the real ones. */
export interface Io {
  readonly stdout: Output;
  readonly stderr: Output;
  readonly stdin: Input;
  /**
   * Asks to be notified when the user or the system wants this process to end (Ctrl-C, SIGTERM, SIGHUP). Without a listener
   * the signal ends the process at once.
   * @returns takes the listener away again
   */
  onStopRequest(listener: () => void): () => void;
  /** `muster up`, when it started this process; null otherwise. */
  readonly supervisor: SupervisorLink | null;
}

export interface Output {
  readonly isTerminal: boolean;
  /** Width of the terminal; null when it is none. */
  columns(): number | null;
  /** Height of the terminal; null when it is none. */
  rows(): number | null;
  /** @returns takes the listener away again */
  onResize(listener: () => void): () => void;
  /**
   * Resolves once the reader has taken the data, so that a slow reader slows the writer down instead of filling memory.
   * @throws {OutputClosedError} when the reader is gone, as with `| head`
   */
  write(data: string | Uint8Array): Promise<void>;
}

export interface Input {
  readonly isTerminal: boolean;
  /**
   * Hands over keys as they are typed, several at once where they come fast, unechoed and without waiting for Enter;
   * Ctrl-C then is a key (`\x03`) and no stop request. Only for a terminal.
   * @returns gives the keyboard back
   */
  onKeys(listener: (keys: string) => void): () => void;
  /** Everything up to the end of input; null once there are more than `bytesMax` bytes. */
  readAll(bytesMax: number): Promise<Buffer | null>;
}

/** What a daemon tells the `muster up` that started it. */
export type DaemonMessage =
  | { readonly kind: 'serving'; readonly address: string | null }
  | { readonly kind: 'failed'; readonly message: string; readonly hints: readonly string[] };

export interface SupervisorLink {
  send(message: DaemonMessage): Promise<void>;
}

/** Not a failure: the reader of our output has seen enough. */
export class OutputClosedError extends Error {
  override readonly name = 'OutputClosedError';

  constructor() {
    super('the reader of the output is gone');
  }
}

/** An AbortSignal that fires at the first stop request. Call `dispose` when nothing is left to abort. */
export function abortOnStopRequest(io: Io): { readonly signal: AbortSignal; dispose(): void } {
  const controller = new AbortController();
  const dispose = io.onStopRequest(() => controller.abort());
  return { signal: controller.signal, dispose };
}

/**
 * Remembers stop requests from now on: with the returned `io`, a listener that is added later is notified at once of one that came
 * before. Call `dispose` when nobody asks any longer.
 */
export function rememberStopRequests(io: Io): { readonly io: Io; dispose(): void } {
  const listeners = new Set<() => void>();
  let isRequested = false;
  const dispose = io.onStopRequest(() => {
    isRequested = true;
    for (const listener of listeners) listener();
  });
  const onStopRequest = (listener: () => void) => {
    if (isRequested) listener();
    listeners.add(listener);
    return () => void listeners.delete(listener);
  };
  return { io: { ...io, onStopRequest }, dispose };
}
