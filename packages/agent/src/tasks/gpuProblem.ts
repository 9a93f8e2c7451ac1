/** Whether a task may have the GPUs it was given, by what the node knows of itself when the task is prepared. */

import { setTimeout as delay } from 'node:timers/promises';
import { causeOf } from '@muster/common/cause';
import { drainedBy } from '@muster/common/conditions';
import { isCauseKind } from '@muster/common/spec/causes';
import type { Cause } from '@muster/common/views';
import type { ForeignProcess } from '../gpus/foreignProcesses.ts';
import type { NodeStatus } from '../node/nodeWatch.ts';

/**
 * Conditions may be younger than the decision that gave the node this task.
 * @param status as it was sent last; null: not yet
 * @returns why not; null: it may
 */
export function gpuProblem(gpuUuids: readonly string[], status: NodeStatus | null): Cause | null {
  if (status === null) return null;
  const { inventory, conditions } = status;
  const ofNode = conditions.find(({ action }) => action === 'drain_node');
  if (ofNode !== undefined) {
    const kind = isCauseKind(ofNode.kind) ? ofNode.kind : 'gpu_fault';
    return causeOf(kind, `the node takes no new work: ${ofNode.message}`);
  }
  const present = new Set(inventory.gpus.map(({ uuid }) => uuid));
  for (const uuid of gpuUuids) {
    if (!present.has(uuid)) return causeOf('gpu_fault', `GPU ${uuid} is no longer present`);
    const ofGpu = conditions.find((condition) => drainedBy([condition], inventory).gpuUuids.has(uuid));
    if (ofGpu !== undefined) {
      return causeOf('gpu_fault', `GPU ${uuid} takes no new work: ${ofGpu.message}`);
    }
  }
  return null;
}

/**
 * A process on one of the GPUs that is no task of this node. One that is about to end, such as the last of a task before
 * this one, is waited for; so is a reading that is older than its leaving the GPU: processes are read every ten seconds or so.
 * @param look now
 * @throws the reason of `abort`
 */
export async function occupiedGpu(
  look: () => readonly ForeignProcess[],
  abort: AbortSignal,
  { looks, pauseMs } = { looks: 60, pauseMs: 250 },
): Promise<Cause | null> {
  for (let left = looks; ; left -= 1) {
    const [foreign] = look();
    if (foreign === undefined) return null;
    const { gpuUuid, pid, name } = foreign;
    if (left === 1) {
      const message = `GPU ${gpuUuid} is in use by pid ${pid} (${name}), which is no task of this node: end that process`;
      return causeOf('gpu_fault', message);
    }
    await delay(pauseMs, undefined, { signal: abort }).catch(() => abort.throwIfAborted());
  }
}
