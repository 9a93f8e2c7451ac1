/**
 * The body of one answer that is a stream of server-sent events, to a client that may be slow or gone. Events that were not sent
 * yet wait in memory, up to a bound. Beyond it, the sender waits until the client has taken some. A client that takes nothing
 * for too long is disconnected.
 */
import type { ServerResponse } from 'node:http';

/** Characters that wait here at most, beside one event; what the system buffers for the connection comes on top. */
const pendingMax = 64 * 1024;

export interface SseTiming {
  /** A client that has taken nothing of what waits for it for this many milliseconds is disconnected. */
  readonly stallMs: number;
  /** After this many milliseconds without an event, a comment is sent: proxies keep the connection, a broken one is detected. */
  readonly idleMs: number;
}

export const usualSseTiming: SseTiming = { stallMs: 30_000, idleMs: 15_000 };

export class SseStream {
  private readonly response: ServerResponse;
  private readonly timing: SseTiming;
  private readonly idling: NodeJS.Timeout;
  private pending = '';
  private isFlushDue = false;
  private stalling: NodeJS.Timeout | null = null;
  private isIdle = false;
  private readonly waiting: (() => void)[] = [];
  private isOver = false;

  /** @param onOver the client is gone, or was disconnected */
  constructor(response: ServerResponse, timing: SseTiming, onOver: () => void) {
    this.response = response;
    this.timing = timing;
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      // nginx would keep events until it has some kilobytes of them.
      'x-accel-buffering': 'no',
    });
    response.flushHeaders();
    response.on('drain', () => this.drained());
    response.on('error', () => {});
    response.once('close', () => {
      this.finish();
      onOver();
    });
    this.idling = setInterval(() => this.keepAlive(), timing.idleMs);
    this.idling.unref();
  }

  /**
   * Sends text, together with what else is sent until the promises that are settled now have been dealt with.
   * @returns null: more may be sent at once; else resolves when it may, also when the client is gone
   */
  send(text: string): Promise<void> | null {
    if (this.isOver) return null;
    this.pending += text;
    if (!this.isFlushDue) {
      this.isFlushDue = true;
      // Not in a round of the event loop of its own: whatever else is due in it would come first.
      process.nextTick(() => this.flush());
    }
    if (this.stalling === null && this.pending.length < pendingMax) return null;
    return new Promise((resolve) => {
      this.waiting.push(resolve);
      this.flush();
    });
  }

  /** Sends what is left and ends the answer. */
  end(): void {
    if (this.isOver) return;
    const { pending } = this;
    this.pending = '';
    this.finish();
    this.response.end(pending);
  }

  private flush(): void {
    this.isFlushDue = false;
    // While the client takes nothing, nothing is put behind it.
    if (this.isOver || this.stalling !== null) return;
    if (this.pending !== '') {
      const { pending } = this;
      this.pending = '';
      this.isIdle = false;
      if (!this.response.write(pending)) {
        this.stalling = setTimeout(() => this.response.destroy(), this.timing.stallMs);
        this.stalling.unref();
        return;
      }
    }
    this.takeMore();
  }

  private drained(): void {
    if (this.stalling !== null) clearTimeout(this.stalling);
    this.stalling = null;
    this.flush();
  }

  private keepAlive(): void {
    // What waits for a client that takes nothing shows as well that the stream is there.
    if (this.isIdle && this.stalling === null) void this.send(':\n\n');
    this.isIdle = true;
  }

  private finish(): void {
    this.isOver = true;
    this.pending = '';
    clearInterval(this.idling);
    if (this.stalling !== null) clearTimeout(this.stalling);
    this.takeMore();
  }

  private takeMore(): void {
    for (const resolve of this.waiting.splice(0)) resolve();
  }
}

/** One event. @param id what `Last-Event-ID` resumes after; null: it cannot be resumed after */
export function sseEvent(data: string, id: string | null = null, name: string | null = null): string {
  // JSON has no line ends, so one line of data is enough.
  return `${id === null ? '' : `id: ${id}\n`}${name === null ? '' : `event: ${name}\n`}data: ${data}\n\n`;
}
