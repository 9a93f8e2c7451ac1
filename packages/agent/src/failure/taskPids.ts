/** The processes of a bare task while it runs, found without asking its guard. */

import { ControlGroup } from '../fence/controlGroup.ts';
import { isRunning, type ProcessIdentity, readKernelFileUnlessGone } from '../fence/processes.ts';
import { readStoredTask } from '../guard/records.ts';
import type { TaskLocation } from '../taskFacts/execution.ts';

/** Far more than a training has on one node; a fork bomb must not cost the agent more than this. */
const pidsMax = 4_096;

/** null: it has none, because it is a container's or has not been started. */
export function mainProcessOf(location: TaskLocation): ProcessIdentity | null {
  return readStoredTask(location, '')?.main ?? null;
}

/** What lives now of the task's control group, or, where it has none, of the children of its main process. */
export function pidsOf(location: TaskLocation): readonly number[] {
  const record = readStoredTask(location, '');
  if (record === null) return [];
  if (record.cgroup !== null) return new ControlGroup(record.cgroup).pids().slice(0, pidsMax);
  return record.main !== null && isRunning(record.main) ? descendantsOf(record.main.pid) : [];
}

/** By /proc/PID/task/TID/children (proc(5)), of each process' main thread, and the process itself. */
function descendantsOf(pid: number): readonly number[] {
  const found = [pid];
  for (let index = 0; index < found.length && found.length < pidsMax; index += 1) {
    const parent = found[index];
    const children = readKernelFileUnlessGone(`/proc/${parent}/task/${parent}/children`) ?? '';
    found.push(
      ...children
        .split(' ')
        .filter((child) => child !== '')
        .map(Number),
    );
  }
  return found.slice(0, pidsMax);
}
