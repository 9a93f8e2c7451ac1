/**
 * The verifier as an agent sees it: asked for a verdict, it is started when none runs and ends by itself when nothing is
 * left to do. One that dies is started again once for the same checkpoint: if that kills it too, the checkpoint is at
 * fault, and is left alone.
 */

import { execFile } from 'node:child_process';
import { setPriority } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { untilAborted } from '@muster/common/async';
import type { VerificationDepth } from '@muster/common/checkpoints';
import { findProgram } from '@muster/common/files';
import { JsonLinesChild } from '@muster/common/jsonLinesChild';
import type { Logger } from '@muster/common/log';
import { closedNodeFlags } from '@muster/common/nodeFlags';
import { unverifiable, type Verification } from './verification.ts';
import { type VerifierAnswer, type VerifierRequest, verifierLineLengthMax } from './verifier/protocol.ts';

export interface VerifierProcessOptions {
  /** Absolute path of the verifier's bundle, or of `verifier/main.ts`. */
  readonly program: string;
  readonly nodePath: string;
  readonly log: Logger;
  /** How long it stays without work, ≥ 1. Usual: 30. */
  readonly idleSeconds?: number;
  /**
   * Somebody waits for its verdicts, and they cost little: it runs at the priority of its parent. Default: behind
   * everything else that needs a processor or a disk.
   */
  readonly isUrgent?: boolean;
}

export interface VerifierOrder {
  /** The checkpoint directory. */
  readonly root: string;
  /** Of the checkpoint in it. */
  readonly name: string;
  readonly depth: VerificationDepth;
  /** ≥ 1; default: as fast as the disk. */
  readonly bytesPerSecondMax?: number;
}

/**
 * A verifier that reads from a file server which does not respond cannot stop; then it is killed. Long enough for one that has
 * the lowest priority on a busy machine.
 */
const abortMs = 5_000;
/** How long a killed one is waited for. */
const goneMs = 1_000;
const startsMax = 2;

type Outcome = VerifierAnswer | { readonly kind: 'died'; readonly how: string };

export class VerifierProcess {
  private readonly options: VerifierProcessOptions;
  private running: RunningVerifier | null = null;
  private lastTurn: Promise<unknown> = Promise.resolve();
  private lastId = 0;
  private readonly closing = new AbortController();

  constructor(options: VerifierProcessOptions) {
    this.options = options;
  }

  /** null: none runs. */
  get pid(): number | null {
    return this.running?.pid ?? null;
  }

  /**
   * One at a time, in the order in which they were asked for. Takes as long as the storage does: a signal bounds it.
   * @throws the reason of the signal, at once, and {Error} after `close`
   */
  verify(order: VerifierOrder, signal?: AbortSignal): Promise<Verification> {
    const signals = signal === undefined ? [this.closing.signal] : [this.closing.signal, signal];
    const stop = AbortSignal.any(signals);
    const turn = this.lastTurn.then(() => this.verifyNow(order, stop));
    this.lastTurn = turn.catch(() => {});
    return untilAborted(turn, stop);
  }

  /** Resolves when the process is gone, or cannot be ended because it hangs in the kernel. */
  async close(): Promise<void> {
    this.closing.abort(new Error('the verifier of this agent is closed'));
    const running = this.running;
    running?.abandon();
    await Promise.race([running?.gone, delay(goneMs, undefined, { ref: false })]);
    await this.lastTurn;
  }

  private async verifyNow(order: VerifierOrder, signal: AbortSignal): Promise<Verification> {
    for (let starts = 1; ; starts += 1) {
      signal.throwIfAborted();
      const outcome = await this.ask(order, signal);
      signal.throwIfAborted();
      if (outcome.kind === 'verified') return outcome.verification;
      if (outcome.kind === 'aborted') throw new Error('the verifier gave up without being asked to');
      this.options.log.warn(
        { checkpoint: order.name, how: outcome.how, starts },
        'the verifier of checkpoints died',
      );
      if (starts === startsMax) return unverifiable(`the verifier died of it twice: ${outcome.how}`);
    }
  }

  private async ask(order: VerifierOrder, signal: AbortSignal): Promise<Outcome> {
    const earlier = this.running;
    if (earlier !== null) {
      const outcome = await this.askOf(earlier, order, signal);
      // It may have ended, because it was idle, at the moment when it was asked; nothing was lost then.
      if (outcome.kind !== 'died' || !earlier.hasEndedInOrder) return outcome;
      signal.throwIfAborted();
    }
    return this.askOf(this.start(), order, signal);
  }

  private async askOf(running: RunningVerifier, order: VerifierOrder, signal: AbortSignal): Promise<Outcome> {
    this.lastId += 1;
    const outcome = await running.ask(this.lastId, order, signal);
    // One that hangs in the kernel outlives its kill, and the next one must not wait for that.
    if (outcome.kind === 'died' && this.running === running) this.running = null;
    return outcome;
  }

  private start(): RunningVerifier {
    const { nodePath, program, idleSeconds, isUrgent = false } = this.options;
    const idle = idleSeconds === undefined ? [] : [String(idleSeconds)];
    const command = verifierCommand(nodePath, program, { isUrgent });
    const running = new RunningVerifier([...command, ...idle], { isUrgent });
    this.running = running;
    void running.gone.then(() => {
      if (this.running === running) this.running = null;
    });
    return running;
  }
}

class RunningVerifier {
  readonly gone: Promise<void>;
  private readonly child: JsonLinesChild<VerifierAnswer>;
  private receive: (outcome: Outcome) => void = () => {};
  private how: string | null = null;
  private endedInOrder = false;

  constructor(command: readonly string[], { isUrgent }: { readonly isUrgent: boolean }) {
    this.child = new JsonLinesChild({
      command,
      lineLengthMax: verifierLineLengthMax,
      onMessage: (answer) => this.receive(answer),
    });
    const { pid, gone } = this.child;
    if (pid !== null && !isUrgent) putBehindOthers(pid);
    this.gone = gone.then(({ exitCode, description }) => {
      this.endedInOrder = exitCode === 0;
      this.giveUp(description);
    });
  }

  /** No further answer comes of it. */
  private giveUp(how: string): void {
    this.how ??= how;
    this.receive({ kind: 'died', how: this.how });
  }

  get pid(): number | null {
    return this.child.pid;
  }

  /** It had nothing to do for its while. */
  get hasEndedInOrder(): boolean {
    return this.endedInOrder;
  }

  /** Kills it, and gives up on it without waiting for its end. */
  abandon(): void {
    this.child.kill();
    this.giveUp('it did not stop when it was asked to');
  }

  /** One at a time. Resolves in any case: a verifier that does not stop when it is asked to is killed. */
  async ask(id: number, order: VerifierOrder, signal: AbortSignal): Promise<Outcome> {
    const answered = new Promise<Outcome>((resolve) => {
      this.receive = (outcome) => {
        if (outcome.kind === 'died' || outcome.id === id) resolve(outcome);
      };
    });
    if (this.how !== null) return { kind: 'died', how: this.how };
    this.send({ ...order, bytesPerSecondMax: order.bytesPerSecondMax ?? null, kind: 'verify', id });
    let killTimer: NodeJS.Timeout | undefined;
    const abort = () => {
      this.send({ kind: 'abort', id });
      killTimer = setTimeout(() => this.abandon(), abortMs);
    };
    signal.addEventListener('abort', abort, { once: true });
    try {
      return await answered;
    } finally {
      clearTimeout(killTimer);
      signal.removeEventListener('abort', abort);
    }
  }

  private send(request: VerifierRequest): void {
    this.child.send(request);
  }
}

/** How the verifier is started: unless it is urgent, behind everything else that wants a processor or a disk. */
const lowestPriority = 19;
/** Whatever PATH the agent was started with. */
const programFolders = '/usr/bin:/bin';

/**
 * `nice` becomes the verifier, so that each of its threads is behind the others. The heap holds some JSON; contents are
 * read into a buffer outside of it.
 * @param program absolute path of the verifier's bundle, or of `verifier/main.ts`
 */
export function verifierCommand(
  nodePath: string,
  program: string,
  { isUrgent }: { readonly isUrgent: boolean },
): string[] {
  const nice = findProgram('nice', programFolders);
  const behind = nice === null || isUrgent ? [] : [nice, '-n', String(lowestPriority)];
  return [...behind, nodePath, ...closedNodeFlags, '--max-old-space-size=512', program];
}

/**
 * For where `nice` is missing, and for the disk: idle, only when nobody else wants it. Not as the command that starts it,
 * because a kernel that refuses would then keep it from starting; it works without, at the price of others.
 */
function putBehindOthers(pid: number): void {
  try {
    setPriority(pid, lowestPriority);
  } catch {
    // It has ended already.
  }
  const ionice = findProgram('ionice', programFolders);
  if (ionice !== null) execFile(ionice, ['-c', '3', '-p', String(pid)], () => {});
}
