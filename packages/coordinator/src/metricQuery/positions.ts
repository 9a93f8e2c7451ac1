/**
 * How far a stream of values has been told, as text that means the same after a restart of the coordinator:
 * `1767225600000,node-1=1767225610000` is everything until the first time and, of `node-1`, until the second. Of the output of a job it
 * is how far each task has been told: `1767225600000,1.0=4096` is attempt 1, rank 0, and 4096 bytes of its output. Pure.
 */
import { MusterError } from '@muster/common/errors';

/** What a client can send back in a header. */
const textLengthMax = 8_192;
/** Where a text would be longer, what was told within so long before the newest may come twice. */
const lateMsMax = 60_000;
const positionForm = /^\d{1,15}(?:,[a-z0-9.-]{1,63}=\d{1,15})*$/;
const shownMax = 60;

/** Of one source: a node, the cluster, or a task. */
interface SentUntil {
  /** Bytes of output; null: the time says it. */
  readonly bytes: number | null;
  readonly atMs: number;
}

export class Positions {
  /** What no source is named for was told until then; wall clock. */
  readonly fromMs: number;
  private readonly sent = new Map<string, SentUntil>();

  constructor(fromMs: number) {
    this.fromMs = fromMs;
  }

  /**
   * @param inBytes whether sources are tasks, whose position is in bytes
   * @throws {MusterError} `invalid`
   */
  static parse(text: string, inBytes: boolean): Positions {
    if (text.length > 2 * textLengthMax || !positionForm.test(text)) {
      const got = JSON.stringify(text.slice(0, shownMax));
      throw new MusterError(
        'invalid',
        `position: got ${got}; expected one that a message or event had, or milliseconds since 1970`,
      );
    }
    const [base, ...parts] = text.split(',');
    const positions = new Positions(Number(base));
    for (const part of parts) {
      const [source = '', number] = part.split('=');
      if (inBytes) positions.advance(source, positions.fromMs, Number(number));
      else positions.advance(source, Number(number));
    }
    return positions;
  }

  /** Wall clock. */
  atMsOf(source: string): number {
    return this.sent.get(source)?.atMs ?? this.fromMs;
  }

  /** @returns null: nothing of the source was told */
  bytesOf(source: string): number | null {
    return this.sent.get(source)?.bytes ?? null;
  }

  /** Some output was told. */
  get hasBytes(): boolean {
    return Array.from(this.sent.values()).some(({ bytes }) => (bytes ?? 0) > 0);
  }

  advance(source: string, atMs: number, bytes: number | null = null): void {
    this.sent.set(source, { atMs, bytes });
  }

  text(): string {
    const parts = Array.from(this.sent, ([source, { atMs, bytes }]) => `${source}=${bytes ?? atMs}`);
    const text = [this.fromMs, ...parts].join(',');
    return text.length <= textLengthMax ? text : String(this.allSentUntilMs());
  }

  /** A source that has been silent for longer holds nothing back. */
  private allSentUntilMs(): number {
    const times = Array.from(this.sent.values(), ({ atMs }) => atMs);
    const newestMs = times.reduce((newest, atMs) => Math.max(newest, atMs), this.fromMs);
    const current = times.filter((atMs) => atMs >= newestMs - lateMsMax);
    return Math.max(
      this.fromMs,
      current.reduce((oldest, atMs) => Math.min(oldest, atMs), newestMs),
    );
  }
}
