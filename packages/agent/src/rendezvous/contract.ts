/** The seam between a node's tasks and its networks: where it is reached, the ports it holds, the paths it tries. */
import type { Endpoint, PathCheck, PathFindings } from '@muster/common/gangs';
import type { TaskRef } from '@muster/common/ids';
import type { TaskLaunch } from '../drivers/driver.ts';
import type { HeldPort } from '../launch/masterPort.ts';

export interface Rendezvous {
  /**
   * Where other nodes may reach this one, best first.
   * @param wanted `network` of the spec
   */
  endpoints(wanted: string | null): readonly Endpoint[];

  /** A free port of this node that answers the peers of this attempt until it is released. */
  hold(task: TaskRef): Promise<HeldPort>;

  /** Tries the paths, and runs the preflight where it is asked for. Never throws: what went wrong is in the findings. */
  check(task: TaskRef, launch: TaskLaunch, check: PathCheck, abort: AbortSignal): Promise<PathFindings>;
}
