/** The processes of one task, however the kernel holds them together. */
export interface TaskGroup {
  /** Live processes; zombies are not counted. */
  pids(): number[];
  isEmpty(): boolean;
  /**
   * How often in a row, a moment apart, the group must be seen empty (or frozen) before it is: 1 where the kernel keeps
   * count.
   */
  readonly sightings: number;
  /**
   * SIGKILL to every process now. Some may be born meanwhile: repeat until empty. The processes of a frozen group may
   * not feel it before they are thawed.
   * @returns whether it reached all that are there; those that it did not reach would run on once thawed
   */
  kill(): boolean;
  /** Asks for all processes to be stopped where they are. Takes a moment, and may have to be repeated. */
  freeze(): void;
  /** No process runs an instruction. Of an empty group it says nothing: see `isEmpty`. */
  isFrozen(): boolean;
  /** Lets them run again. */
  thaw(): void;
  /** Gives back what the kernel holds for an empty group. false: not yet, ask again later. */
  release(): boolean;
}
