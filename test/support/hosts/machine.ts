/**
 * What a kind of host has to bring. A machine is a set of namespaces of this kernel with a first process; everything
 * else (agents, faults from outside, what is left behind) is the same for containers and bare namespaces, in `host.ts`.
 */
export interface Machine {
  /** Its host name too. */
  readonly name: string;
  /** Where the others reach it, in the first network. */
  readonly address: string;
  /** For data and temporary files, as the machine itself sees the path; it outlives a power cut. */
  readonly homeDir: string;
  /** The first process, as this test sees it: its namespaces are the machine's. null: it is off. */
  readonly initPid: number | null;
  /** Starts it, with a new boot id. */
  boot(): Promise<void>;
  /** A power cut: nothing of it gets another instruction or sends another packet, not even the end of a connection. */
  cutPower(): Promise<void>;
  /** No process of it runs until `unpause`; its clocks continue: a virtual machine that is stopped. */
  pause(): Promise<void>;
  unpause(): Promise<void>;
  /** Pulls a network cable, by default the first. Nobody gets a reset: packets vanish. */
  unplug(network?: number): Promise<void>;
  plug(network?: number): Promise<void>;
}

/** Where machines of one cluster stand, with a network of their own that leads nowhere else. */
export interface MachineRoom {
  readonly kind: 'containers' | 'namespaces';
  /** A folder that this test and all machines see at the same path, whatever happens to their networks. */
  readonly sharedDir: string;
  /** One more machine, switched on. */
  addMachine(name: string): Promise<Machine>;
  /** Takes everything away, whatever state it is in. */
  remove(): Promise<void>;
}
