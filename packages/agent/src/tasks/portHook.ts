/** The port of a task from its preparation to its start, or to its end if it does not start. */
import { messageOf } from '@muster/common/errors';
import { type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { HeldPort } from '../launch/masterPort.ts';
import type { HookParts, TaskContext, TaskHook } from './hooks.ts';
import { NotReady } from './notReady.ts';

/** An address that the other nodes of the gang can reach, and a port. Ports are held for as short a time as possible. */
export function heldPorts({ rendezvous, readNetwork, log }: HookParts) {
  const held = new Map<TaskKey, HeldPort>();
  const release = async ({ location: { key } }: TaskContext): Promise<void> => {
    const port = held.get(key as TaskKey);
    held.delete(key as TaskKey);
    await port?.release();
  };
  const releaseSoon = (task: TaskContext) =>
    void release(task).catch((error: unknown) =>
      log.warn(
        { task: task.location.key, error: messageOf(error) },
        'the port of a task could not be released',
      ),
    );
  const ports: TaskHook = {
    async prepare(task, _onDoing, abort) {
      const { nodeCount, spec } = task.assignment;
      await readNetwork();
      abort.throwIfAborted();
      const problem = nodeCount > 1 ? rendezvous.endpointProblem(spec.network) : null;
      if (problem !== null) throw new NotReady('rendezvous', problem);
      // Of rank 0 it is the rendezvous'. The other ranks of a gang only answer their peers with it.
      if (task.task.nodeRank !== 0 && nodeCount === 1) return;
      const key = task.location.key as TaskKey;
      if (held.has(key)) return;
      const port = await rendezvous.hold(task.task).catch((error: unknown) => {
        throw new NotReady('rendezvous', `no free port: ${messageOf(error)}`, { cause: error });
      });
      held.set(key, port);
      if (abort.aborted) await release(task);
      abort.throwIfAborted();
    },
    // The task's own listener takes the port over.
    starting: release,
    ended: releaseSoon,
    removed: release,
    closed: () => Promise.all([...held.values()].map((port) => port.release())).then(() => held.clear()),
  };
  return { ports, portOf: (task: TaskRef) => held.get(taskKey(task))?.port ?? null };
}
