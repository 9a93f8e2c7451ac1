/** What the agent tells of its host: the facts once, the network anew each time it is asked. */
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { HostFacts, MachineFacts, Nic, NodeInventory, RdmaDevice } from '@muster/common/hardware';
import { type HostFactsOptions, readHostFacts } from './hostFacts.ts';
import { readNics } from './nics.ts';
import { readRdmaDevices } from './rdma.ts';

export interface HostDevices {
  /** null: not read yet */
  readonly host: HostFacts | null;
  readonly nics: readonly Nic[];
  readonly rdmaDevices: readonly RdmaDevice[];
  /** null: not read yet */
  readonly machine: MachineFacts | null;
}

export interface HostInventoryOptions {
  readonly root?: string;
  /** How long `read` waits for adapters that do not answer. */
  readonly deadlineMs?: number;
  readonly readers?: Partial<HostReaders>;
}

export interface HostReaders {
  readonly facts: (options: HostFactsOptions) => Promise<HostFacts>;
  readonly nics: (root: string) => Promise<readonly Nic[]>;
  readonly rdmaDevices: (root: string) => Promise<readonly RdmaDevice[]>;
}

export class HostInventory {
  readonly #root: string;
  readonly #deadlineMs: number;
  readonly #readers: HostReaders;
  #known: HostDevices = { host: null, nics: [], rdmaDevices: [], machine: null };
  /** Adapters that do not answer must not collect threads: no second reader behind one that is stuck. */
  #reading: Promise<void> | null = null;
  #problem: string | null = null;

  constructor({ root = '/', deadlineMs = 5_000, readers = {} }: HostInventoryOptions = {}) {
    this.#root = root;
    this.#deadlineMs = deadlineMs;
    this.#readers = { facts: readHostFacts, nics: readNics, rdmaDevices: readRdmaDevices, ...readers };
  }

  /** As it was last read. */
  get known(): HostDevices {
    return this.#known;
  }

  /** One sentence when the last `read` told of older values; null: all is as it was read. */
  get problem(): string | null {
    return this.#problem;
  }

  /**
   * Some milliseconds when all is well. Never takes longer than the deadline: what has not answered by then is told as
   * it last was.
   */
  async read(): Promise<HostDevices> {
    const reading = (this.#reading ??= this.#readAll().finally(() => {
      this.#reading = null;
    }));
    const abort = new AbortController();
    const deadline = delay(this.#deadlineMs, 'late' as const, { signal: abort.signal }).catch(() => null);
    try {
      const late = (await Promise.race([reading, deadline])) === 'late';
      this.#problem = late
        ? `The network and RDMA adapters of this node did not answer within ${this.#deadlineMs / 1_000} s; ` +
          'they are shown as they last were. Look for messages of their driver in the kernel log.'
        : null;
    } finally {
      abort.abort();
    }
    return this.#known;
  }

  /** Keeps each part as soon as it is read: one that hangs hides only what comes after it. */
  async #readAll(): Promise<void> {
    if (this.#known.host === null) this.#keep({ host: await this.#readers.facts({ root: this.#root }) });
    this.#keep({ nics: await this.#readers.nics(this.#root) });
    this.#keep({ rdmaDevices: await this.#readers.rdmaDevices(this.#root) });
  }

  /** What a process of its own has read of the machine: it changes only with the machine. */
  keepMachine(machine: MachineFacts): void {
    this.#keep({ machine });
  }

  #keep(part: Partial<HostDevices>): void {
    this.#known = { ...this.#known, ...part };
  }
}

/** Whether two inventories say the same, so that only a change is sent. */
export function sameInventory(a: NodeInventory, b: NodeInventory): boolean {
  return isDeepStrictEqual(a, b);
}
