/** What the agent reports of its host: the facts are read once, the network on each request. Tasks share what was just read. */
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { HostFacts, MachineFacts, Nic, NodeInventory, RdmaDevice } from '@muster/common/hardware';
import type { NodeNetwork } from './addresses.ts';
import { type HostFactsOptions, readHostFacts } from './hostFacts.ts';
import { type InterfaceAddresses, readNics, systemAddresses } from './nics.ts';
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
  readonly monotonicMs: () => number;
  readonly root?: string;
  /** How long `read` waits for adapters that do not answer. */
  readonly deadlineMs?: number;
  readonly readers?: Partial<HostReaders>;
}

export interface HostReaders {
  readonly facts: (options: HostFactsOptions) => Promise<HostFacts>;
  readonly nics: (root: string) => Promise<readonly Nic[]>;
  readonly rdmaDevices: (root: string) => Promise<readonly RdmaDevice[]>;
  readonly addresses: () => InterfaceAddresses;
}

/**
 * How old the network may be that a task is given. A node that starts many tasks a second would otherwise spend more on
 * asking its adapters than on the tasks.
 */
const networkAgeMsMax = 1_000;

export class HostInventory {
  private readonly root: string;
  private readonly deadlineMs: number;
  private readonly readers: HostReaders;
  private kept: HostDevices = { host: null, nics: [], rdmaDevices: [], machine: null };
  /** Adapters that do not answer must not collect threads: no second reader behind one that is stuck. */
  private reading: Promise<void> | null = null;
  private lastProblem: string | null = null;
  /** As `read`. One that began less than a second ago is not begun again. */
  readonly readRecent: () => Promise<HostDevices>;
  private readonly recentAddresses: () => InterfaceAddresses;

  constructor({ monotonicMs, root = '/', deadlineMs = 5_000, readers = {} }: HostInventoryOptions) {
    this.root = root;
    this.deadlineMs = deadlineMs;
    this.readers = {
      facts: readHostFacts,
      nics: readNics,
      rdmaDevices: readRdmaDevices,
      addresses: systemAddresses,
      ...readers,
    };
    this.readRecent = recent(() => this.read(), networkAgeMsMax, monotonicMs);
    this.recentAddresses = recent(this.readers.addresses, networkAgeMsMax, monotonicMs);
  }

  /** The adapters as they were last read, and addresses that are at most a second old. */
  network(): NodeNetwork {
    return { ...this.kept, addresses: this.recentAddresses() };
  }

  /** As it was last read. */
  get known(): HostDevices {
    return this.kept;
  }

  /** One sentence when the last `read` returned older values; null: all values are current. */
  get problem(): string | null {
    return this.lastProblem;
  }

  /**
   * Some milliseconds when all is well. Never takes longer than the deadline: what has not answered by then is reported as
   * it last was.
   */
  async read(): Promise<HostDevices> {
    const reading = (this.reading ??= this.readAll().finally(() => {
      this.reading = null;
    }));
    const abort = new AbortController();
    const deadline = delay(this.deadlineMs, 'late' as const, { signal: abort.signal }).catch(() => null);
    try {
      const late = (await Promise.race([reading, deadline])) === 'late';
      this.lastProblem = late
        ? `The network and RDMA adapters of this node did not answer within ${this.deadlineMs / 1_000} s; ` +
          'they are shown as they last were. Look for messages of their driver in the kernel log.'
        : null;
    } finally {
      abort.abort();
    }
    return this.kept;
  }

  /** Keeps each part as soon as it is read: one that hangs hides only what comes after it. */
  private async readAll(): Promise<void> {
    if (this.kept.host === null) this.keep({ host: await this.readers.facts({ root: this.root }) });
    this.keep({ nics: await this.readers.nics(this.root) });
    this.keep({ rdmaDevices: await this.readers.rdmaDevices(this.root) });
  }

  /** What a process of its own has read of the machine: it changes only with the machine. */
  keepMachine(machine: MachineFacts): void {
    this.keep({ machine });
  }

  private keep(part: Partial<HostDevices>): void {
    this.kept = { ...this.kept, ...part };
  }
}

/** One reading serves all who ask for it within a time of its beginning. */
function recent<T>(read: () => T, ageMsMax: number, monotonicMs: () => number): () => T {
  let last: { readonly value: T; readonly atMs: number } | null = null;
  return () => {
    const nowMs = monotonicMs();
    if (last === null || nowMs - last.atMs >= ageMsMax) last = { value: read(), atMs: nowMs };
    return last.value;
  };
}

/** Whether two inventories are the same, so that only a change is sent. */
export function sameInventory(a: NodeInventory, b: NodeInventory): boolean {
  return isDeepStrictEqual(a, b);
}
