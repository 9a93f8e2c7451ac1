/** The cluster as a whole, as the API shows it. */

export interface ClusterView {
  readonly id: string;
  readonly version: string;
  readonly lastEventSeq: number;
  readonly nodesOnline: number;
  readonly nodesTotal: number;
  readonly jobsQueued: number;
  readonly jobsActive: number;
  /** Why nothing is started or rescheduled now; empty: it is. */
  readonly pausedBecause: string;
  /** What is left of the maintenance; 0: there is none. */
  readonly maintenanceMs: number;
  /** What is wrong with the clock of the coordinator's machine, and the remedy. Empty if nothing is. */
  readonly clockProblem: string;
}
