/** Receives the output of tasks from their nodes. */
import type { ServerDuplexStream } from '@grpc/grpc-js';
import { MusterError, messageOf } from '@muster/common/errors';
import type { LogUpload__Output } from '@muster/common/gen/muster/v1/LogUpload';
import type { LogUploadAck } from '@muster/common/gen/muster/v1/LogUploadAck';
import type { NodeName, TaskRef } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { taskRefFromWire, taskRefToWire } from '@muster/common/wire/codec';
import { callerOf } from '../auth/interceptor.ts';
import type { LogIntake } from '../logs/logIntake.ts';
import type { LogEvents } from '../logs/logKeeping.ts';
import type { LogStore } from '../logs/logStore.ts';
import { type Attempt, currentAttempt, type Task } from '../model.ts';
import type { ClusterState } from '../state/state.ts';
import type { Store } from '../store/store.ts';
import { taken } from './bounds/bounded.ts';
import { drained, endWithError } from './calls.ts';

export interface LogUploadParts {
  readonly state: ClusterState;
  readonly store: Pick<Store, 'readJob'>;
  readonly logs: LogStore;
  readonly logEvents: LogEvents;
  readonly intake: LogIntake;
  readonly log: Logger;
}

/** Takes the output of tasks. The output of a task is taken only from the node that runs it or ran it (guarantee G6). */
export function serveUpload(
  parts: LogUploadParts,
  call: ServerDuplexStream<LogUpload__Output, LogUploadAck>,
): void {
  const caller = callerOf(call);
  const node = caller.kind === 'agent' ? caller.node : null;
  const over = new AbortController();
  /** An agent that does not read its answers sends no more: they would pile up here. */
  const answer = async (ack: LogUploadAck) => {
    if (!call.write(ack)) await drained(call, over.signal);
  };
  const take = async (upload: LogUpload__Output) => {
    const task = taskRefFromWire(taken(upload).task);
    if (task === null) return;
    if ((await uploadedTask(parts, node, task)) === null) {
      // Dropped, and acknowledged as complete, so that the agent lets go of it.
      await answer({
        task: taskRefToWire(task),
        nextOffset: upload.offset + upload.data.length,
        complete: true,
      });
      return;
    }
    const admission = parts.intake.admit(task, upload.data.length);
    if (admission.kind === 'wait') {
      if (!upload.waits) throw new MusterError('resource_exhausted', admission.reason);
      const nextOffset = await parts.logs.size(task);
      await answer({ task: taskRefToWire(task), nextOffset, complete: false, retryAfterMs: admission.ms });
      return;
    }
    const nextOffset = await parts.logs.append(task, upload.offset, upload.data, upload.followsGap);
    if (upload.heldBack && (await parts.logs.noteOnce(task, 'throttled'))) parts.logEvents.throttled(task);
    const tailBytes = parts.logs.wantedTail(task) ?? 0;
    const end = upload.offset + upload.data.length;
    const complete = upload.complete && nextOffset >= end && (await parts.logs.complete(task, end));
    await answer({ task: taskRefToWire(task), nextOffset, complete, tailBytes });
  };
  call.on('data', (upload: LogUpload__Output) => {
    call.pause();
    take(upload).then(
      () => call.resume(),
      (error: unknown) => {
        if (error instanceof MusterError) {
          endWithError(call, error);
          return;
        }
        const message = `output could not be stored: ${messageOf(error)}`;
        parts.log.error({ node }, message);
        endWithError(call, new MusterError('resource_exhausted', message, { cause: error }));
      },
    );
  });
  call.on('end', () => call.end());
  for (const event of ['error', 'cancelled', 'close']) call.on(event, () => over.abort());
}

/** The task, if what it writes comes from that node: whatever a node says of others is not taken. */
export async function uploadedTask(
  parts: Pick<LogUploadParts, 'state' | 'store'>,
  node: NodeName | null,
  task: TaskRef,
): Promise<Task | null> {
  if (node === null) return null;
  const ofNode = (attempt: Attempt | undefined) => {
    const found = attempt?.tasks[task.nodeRank];
    return found?.node === node ? found : null;
  };
  const current = currentAttempt(parts.state.jobs.get(task.jobId));
  if (current?.number === task.attempt) return ofNode(current);
  // The last output of a task usually arrives after its end.
  const record = await parts.store.readJob(task.jobId);
  return ofNode(record?.attempts.find((each) => each.number === task.attempt));
}
