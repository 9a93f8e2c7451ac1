/**
 * Simulated time. Everything that happens is an appointment on one timeline; between two appointments every promise has
 * run as far as it can. Nothing waits for the real clock and nothing runs at the same time as anything else, so a run is
 * a function of what was put on the timeline.
 */

/**
 * One run of one process, from its start to its death. What belongs to it happens only while it lives: its timers,
 * answers that it waits for, messages that it gets. A dead process is never called; its promises just stay pending.
 */
export class Life {
  readonly name: string;
  /** Milliseconds that its timers and monotonic clocks count in a millisecond: no two machines agree. */
  readonly clockRate: number;
  private living = true;
  private resumesAtMs = 0;
  private readonly atEnd: (() => void)[] = [];

  constructor(name: string, clockRate = 1) {
    this.name = name;
    this.clockRate = clockRate;
  }

  get alive(): boolean {
    return this.living;
  }

  get pausedUntilMs(): number {
    return this.resumesAtMs;
  }

  /** Stopped by SIGSTOP or by its hypervisor: what is due until then comes late. */
  pauseUntil(atMs: number): void {
    this.resumesAtMs = Math.max(this.resumesAtMs, atMs);
  }

  onEnd(action: () => void): void {
    this.atEnd.push(action);
  }

  end(): void {
    if (!this.living) return;
    this.living = false;
    for (const action of this.atEnd.splice(0)) action();
  }
}

/** Something that will happen; `cancel` on the timeline takes it back. */
export interface Appointment {
  atMs: number;
  /** Breaks ties: first made, first kept. */
  readonly order: number;
  readonly life: Life;
  readonly run: () => void;
  cancelled: boolean;
}

export class Timeline {
  nowMs = 0;
  /** Whose turn it is. Whatever sets a timer now owns it. */
  current: Life;
  steps = 0;
  private made = 0;
  /** A binary heap. */
  private readonly heap: Appointment[] = [];

  /** @param world owns what belongs to no process */
  constructor(world: Life) {
    this.current = world;
  }

  at(delayMs: number, life: Life, run: () => void): Appointment {
    this.made += 1;
    const appointment = {
      atMs: this.nowMs + Math.max(0, delayMs),
      order: this.made,
      life,
      run,
      cancelled: false,
    };
    this.push(appointment);
    return appointment;
  }

  /** Keeps the next appointment and lets its consequences settle. @returns false when nothing is left before `untilMs` */
  async step(untilMs: number): Promise<boolean> {
    for (;;) {
      const next = this.heap[0];
      if (next === undefined || next.atMs > untilMs) {
        this.nowMs = Math.max(this.nowMs, untilMs);
        return false;
      }
      this.pop();
      if (next.cancelled || !next.life.alive) continue;
      if (next.life.pausedUntilMs > next.atMs) {
        next.atMs = next.life.pausedUntilMs;
        this.push(next);
        continue;
      }
      this.nowMs = next.atMs;
      this.steps += 1;
      this.current = next.life;
      next.run();
      await settled();
      return true;
    }
  }

  private push(appointment: Appointment): void {
    const { heap } = this;
    let index = heap.length;
    heap.push(appointment);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.isBefore(index, parent)) return;
      this.swap(index, parent);
      index = parent;
    }
  }

  private pop(): void {
    const { heap } = this;
    this.swap(0, heap.length - 1);
    heap.pop();
    let index = 0;
    for (;;) {
      const left = 2 * index + 1;
      let least = index;
      if (left < heap.length && this.isBefore(left, least)) least = left;
      if (left + 1 < heap.length && this.isBefore(left + 1, least)) least = left + 1;
      if (least === index) return;
      this.swap(index, least);
      index = least;
    }
  }

  private isBefore(index: number, other: number): boolean {
    const a = this.heap[index];
    const b = this.heap[other];
    if (a === undefined || b === undefined) return false;
    return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
  }

  private swap(index: number, other: number): void {
    const { heap } = this;
    const a = heap[index];
    const b = heap[other];
    if (a === undefined || b === undefined) return;
    heap[index] = b;
    heap[other] = a;
  }
}

/** Node empties the queue of promises before it takes the next tick, so by then every reaction has had its turn. */
function settled(): Promise<void> {
  return new Promise((resolve) => {
    process.nextTick(resolve);
  });
}

/**
 * Puts the timers of this program on the timeline: the product's own `setTimeout` and `setImmediate` run in simulated
 * time and die with the process that set them.
 * @returns what puts the real ones back
 */
export function replaceTimers(timeline: Timeline): () => void {
  const real = {
    setTimeout: globalThis.setTimeout,
    clearTimeout: globalThis.clearTimeout,
    setInterval: globalThis.setInterval,
    clearInterval: globalThis.clearInterval,
    setImmediate: globalThis.setImmediate,
    clearImmediate: globalThis.clearImmediate,
  };
  const once = (run: (...args: unknown[]) => void, delayMs = 0, ...args: unknown[]) =>
    new Timer(timeline, () => run(...args), delayMs, false);
  const repeatedly = (run: (...args: unknown[]) => void, delayMs = 0, ...args: unknown[]) =>
    new Timer(timeline, () => run(...args), delayMs, true);
  const clear = (timer: unknown) => {
    if (timer instanceof Timer) timer.close();
  };
  const simulated = {
    setTimeout: once,
    clearTimeout: clear,
    setInterval: repeatedly,
    clearInterval: clear,
    setImmediate: (run: (...args: unknown[]) => void, ...args: unknown[]) => once(run, 0, ...args),
    clearImmediate: clear,
  };
  Object.assign(globalThis, simulated);
  return () => void Object.assign(globalThis, real);
}

/** As much of NodeJS.Timeout as the product uses. */
class Timer {
  private appointment: Appointment;

  constructor(timeline: Timeline, run: () => void, delayMs: number, repeats: boolean) {
    const owner = timeline.current;
    const waitMs = (least: number) => Math.round(Math.max(least, delayMs) / owner.clockRate);
    const ring = () => {
      if (repeats) this.appointment = timeline.at(waitMs(1), owner, ring);
      run();
    };
    this.appointment = timeline.at(waitMs(0), owner, ring);
  }

  unref(): this {
    return this;
  }

  close(): void {
    this.appointment.cancelled = true;
  }
}
