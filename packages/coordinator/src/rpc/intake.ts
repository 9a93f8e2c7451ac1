/**
 * Takes the messages of one session as fast as they are dealt with. What an agent sends waits in the network, not in memory,
 * while too many of its messages wait for a commit or it does not read its answers; one that sends more than any node has to
 * say has its session ended.
 */
import { MusterError } from '@muster/common/errors';
import type { NodeName } from '@muster/common/ids';
import { NodeAllowances, type Rate } from '../work/allowance.ts';
import { readingCostOf, taken } from './bounds/bounded.ts';

/** The server's end of a stream. */
export interface IntakeCall<Message> {
  on(event: 'data', listener: (message: Message) => void): unknown;
  on(event: 'drain', listener: () => void): unknown;
  pause(): unknown;
  resume(): unknown;
  /** Answers wait because the other end does not read. */
  readonly writableNeedDrain: boolean;
}

/** Messages of one session that wait for a commit. Heartbeats wait for none, but for what came before them. */
const waitingMax = 64;
/** Beside its fields, every message is an event of the process. */
const messageCost = 20;

/**
 * In fields on the wire. A heartbeat of 256 tasks that train has some 8,000; that 256 tasks start on one node takes 30,000, and a
 * thousand short tasks a second 60,000.
 */
const sessionRate: Rate = { perSecond: 60_000, atOnce: 600_000 };

/** Of each node, over all of its sessions: a new connection earns nothing. */
export class SessionAllowances {
  private readonly allowances: NodeAllowances;

  constructor(monotonicMs: () => number) {
    this.allowances = new NodeAllowances(sessionRate, monotonicMs);
  }

  /** @throws {MusterError} `resource_exhausted` when the node has sent too much */
  take(node: NodeName, message: object): void {
    if (this.allowances.take(node, messageCost + readingCostOf(message))) return;
    throw new MusterError(
      'resource_exhausted',
      `${node} sends more than ${sessionRate.perSecond} fields per second; its session is closed, and it may reconnect`,
    );
  }
}

/**
 * @param take admits a message: throws for one that is one too many
 * @param handle deals with it; resolves when nothing of it waits any longer
 * @param refuse ends the session
 */
export function takeInTurn<Message extends object>(
  call: IntakeCall<Message>,
  take: (message: Message) => void,
  handle: (message: Message) => Promise<void>,
  refuse: (error: unknown) => void,
): void {
  let waiting = 0;
  let isPaused = false;
  let isRefused = false;
  const steer = () => {
    const shouldPause = waiting >= waitingMax || call.writableNeedDrain;
    if (shouldPause === isPaused || isRefused) return;
    isPaused = shouldPause;
    if (shouldPause) call.pause();
    else call.resume();
  };
  const end = (error: unknown) => {
    if (isRefused) return;
    isRefused = true;
    refuse(error);
  };
  call.on('drain', steer);
  call.on('data', (message) => {
    if (isRefused) return;
    try {
      take(taken(message));
    } catch (error) {
      end(error);
      return;
    }
    waiting += 1;
    handle(message)
      .catch(end)
      .finally(() => {
        waiting -= 1;
        steer();
      });
    steer();
  });
}
