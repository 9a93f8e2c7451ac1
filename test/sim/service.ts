/** A guard or container engine as its agents meet it: requests take time, and may fail with their effect done or not. */
import type { Machine } from './machine.ts';
import { Life } from './timeline.ts';

export class Service {
  readonly machine: Machine;
  /** Its process, or the last there was. */
  process: Life;
  awayUntilMs = 0;
  private beganMs = 0;
  /** Requests are taken in the order they were sent. */
  private takesNextAtMs = 0;
  /** A client that waits for an answer loses the connection when it goes away. */
  private readonly unanswered = new Set<(error: Error) => void>();
  private readonly name: string;
  private readonly onBegin: (process: Life) => void;

  /** @param onBegin gets every process of it, in a turn of that process */
  constructor(machine: Machine, name: string, onBegin: (process: Life) => void = () => {}) {
    this.machine = machine;
    this.name = `${name} of ${machine.name}`;
    this.onBegin = onBegin;
    this.process = new Life(this.name, machine.clock.rate);
    this.process.end();
  }

  /** Without having been away. */
  get hereSinceMs(): number {
    return Math.max(this.beganMs, this.awayUntilMs);
  }

  /** With the machine, or after it was killed. */
  begin(): void {
    const { power, clock, timeline } = this.machine;
    if (this.process.alive || !power.alive) return;
    const process = new Life(this.name, clock.rate);
    this.process = process;
    this.beganMs = timeline.nowMs;
    power.onEnd(() => process.end());
    timeline.at(0, process, () => this.onBegin(process));
  }

  /** It answers nothing for a while; what it does by itself it does. */
  hang(forMs: number): void {
    this.awayUntilMs = this.machine.timeline.nowMs + forMs;
    for (const fail of Array.from(this.unanswered)) fail(new Error(`the ${this.name} has gone away`));
  }

  /** Its tasks run on without it. */
  kill(forMs: number): void {
    this.hang(forMs);
    this.process.end();
    this.machine.timeline.at(forMs, this.machine.power, () => this.begin());
  }

  heal(): void {
    this.awayUntilMs = Math.min(this.awayUntilMs, this.machine.timeline.nowMs);
    this.begin();
  }

  /** @param act has its effect on the machine and calls `answer` once it is done, now or later */
  request<T>(agent: Life, act: (answer: (value: T) => void) => void): Promise<T> {
    const { unanswered, machine } = this;
    const { timeline, random } = machine;
    const isAway = () => timeline.nowMs < this.awayUntilMs || !this.process.alive;
    // Sent by an agent that dies before it is read: still in the socket, or lost with it.
    const survivesSender = random.chance(0.7);
    return new Promise((resolve, reject) => {
      const settle = (delayMs: number, how: () => void) => {
        if (!unanswered.delete(fail)) return;
        timeline.at(delayMs, agent, how);
      };
      const fail = (error: Error) => settle(1, () => reject(error));
      unanswered.add(fail);
      agent.onEnd(() => unanswered.delete(fail));
      if (!this.process.alive || (isAway() && random.chance(0.8))) {
        settle(random.between(1, 50), () => reject(new Error(`the ${this.name} does not answer`)));
        return;
      }
      this.takesNextAtMs = Math.max(this.takesNextAtMs, timeline.nowMs + random.between(0, 5));
      timeline.at(this.takesNextAtMs - timeline.nowMs, this.process, () => {
        if (!agent.alive && !survivesSender) return;
        try {
          act((value) => {
            if (isAway()) fail(new Error(`the ${this.name} went away before it answered`));
            else settle(random.between(0, 5), () => resolve(value));
          });
        } catch (error) {
          fail(error as Error);
        }
      });
    });
  }
}
