/** The processes of one task, by control group or by session. */
export interface TaskGroup {
  /** Live processes, without zombies. */
  pids(): number[];
  isEmpty(): boolean;
  /**
   * How many checks in a row must find the group empty, or frozen, before it counts as that. It is 1 where the kernel itself
   * knows the processes of the group.
   */
  readonly looksNeeded: number;
  /**
   * Sends SIGKILL to every process. Processes may be created meanwhile, so it is repeated until the group is empty. In a frozen
   * group, SIGKILL may take effect only after a thaw.
   * @returns whether every process was reached. The others would run after a thaw
   */
  kill(): boolean;
  /** Requests a freeze of all processes. It takes effect later, and may have to be repeated. */
  freeze(): void;
  /** Whether no process executes anything. The result has no meaning for an empty group: see `isEmpty`. */
  isFrozen(): boolean;
  /** Undoes a freeze. */
  thaw(): void;
  /** Removes an empty group from the kernel. @returns false: that is not possible yet */
  release(): boolean;
}
