/** Receives rows of metrics from the nodes of tasks. */
import type { ServerDuplexStream } from '@grpc/grpc-js';
import { MusterError, messageOf } from '@muster/common/errors';
import type { RowUpload__Output } from '@muster/common/gen/muster/v1/RowUpload';
import type { RowUploadAck } from '@muster/common/gen/muster/v1/RowUploadAck';
import type { TaskRef } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import type { TrainingRow } from '@muster/common/training';
import type { TaskEnd } from '@muster/common/views';
import { taskRefFromWire, taskRefToWire, trainingRowFromWire } from '@muster/common/wire/codec';
import { valueCountsFromWire, valueCountsToWire } from '@muster/common/wire/rowCounts';
import { callerOf } from '../auth/interceptor.ts';
import type { Identity } from '../caller.ts';
import type { Loop } from '../loop.ts';
import { currentAttempt } from '../model.ts';
import type { EndMark } from '../rows/rowFormat.ts';
import type { RowKeeping } from '../rows/rowKeeping.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';
import type { ClusterState } from '../state/state.ts';
import type { Store } from '../store/store.ts';
import { RefusedMessage } from './bounds/bounded.ts';
import { drained, endWithError } from './calls.ts';
import { uploadedTask } from './logUploads.ts';

/** After a write has failed. */
const retryAfterMs = 5_000;

export interface RowUploadParts {
  readonly state: ClusterState;
  readonly store: Pick<Store, 'readJob'>;
  readonly rowKeeping: Pick<RowKeeping, 'rows' | 'budget' | 'intake' | 'ended'>;
  readonly loop: Pick<Loop, 'run'>;
  readonly wallMs: () => number;
  readonly log: Logger;
}

/** A stream per agent. A task's rows are taken from the node that holds it, or held it, and from no other. */
export function serveRows(
  parts: RowUploadParts,
  call: ServerDuplexStream<RowUpload__Output, RowUploadAck>,
): void {
  const caller = callerOf(call);
  const node = caller.kind === 'agent' ? caller.node : null;
  const { rows, budget, intake } = parts.rowKeeping;
  /** Said once on each connection. */
  let hasFailed = false;
  const answerTo = async (upload: RowUpload__Output): Promise<RowUploadAck | null> => {
    const task = taskRefFromWire(upload.task);
    if (task === null) return null;
    const wire = taskRefToWire(task);
    const fresh = upload.rows.map(trainingRowFromWire);
    // Dropped, and acknowledged as complete, so that the agent lets go of them.
    const uploaded = await uploadedTask(parts, node, task);
    if (uploaded === null) return { task: wire, position: fresh.at(-1)?.position ?? 0, complete: true };
    try {
      const notNow = intake.admit(task, fresh.length);
      if (notNow !== null) {
        const { waitMs: wait, isTooFast } = notNow;
        return { task: wire, position: await rows.position(task), retryAfterMs: wait, tooFast: isTooFast };
      }
      const sent = { printed: valueCountsFromWire(upload.printed), unreadBytes: upload.unreadBytes };
      await rows.append(task, fresh, budget.shareBytes, parts.wallMs(), sent);
      const { position, printed, unreadBytes } = await rows.received(task);
      const received = { printed: valueCountsToWire(printed), unreadBytes };
      await noteFirstStep(parts, caller, task, fresh);
      if (upload.complete) await parts.rowKeeping.ended(task, endMark(upload.lost, position, uploaded.exit));
      return { task: wire, position, complete: upload.complete, received };
    } catch (error) {
      if (!hasFailed) parts.log.error({ node, error: messageOf(error) }, 'metrics could not be stored');
      hasFailed = true;
      return { task: wire, position: 0, retryAfterMs };
    }
  };
  const over = new AbortController();
  call.on('data', (upload: RowUpload__Output) => {
    if (upload instanceof RefusedMessage) {
      endWithError(call, upload.error);
      return;
    }
    call.pause();
    answerTo(upload).then(
      async (answer) => {
        // An agent that does not read its answers sends no more: they would pile up here.
        if (answer !== null && !call.write(answer)) await drained(call, over.signal);
        call.resume();
      },
      (error: unknown) =>
        endWithError(
          call,
          error instanceof MusterError ? error : new MusterError('internal', messageOf(error)),
        ),
    );
  });
  call.on('end', () => call.end());
  for (const event of ['error', 'cancelled', 'close']) call.on(event, () => over.abort());
}

/**
 * The mark to store behind the last row of a task.
 * @param position up to where its rows are here
 * @returns null: the report of its end says where they end, and they are here up to there
 */
function endMark(isLost: boolean, position: number, exit: TaskEnd | null): EndMark | null {
  const rowsEnd = exit?.rowsEnd;
  if (rowsEnd === undefined) return isLost ? 'lost' : 'complete';
  return position >= rowsEnd ? null : 'lost';
}

/** Records when the attempt made its first step, once, by the first rows that show a step. */
async function noteFirstStep(
  { state, loop }: RowUploadParts,
  caller: Identity,
  { jobId, attempt: number, nodeRank }: TaskRef,
  rows: readonly TrainingRow[],
): Promise<void> {
  const attempt = currentAttempt(state.jobs.get(jobId));
  if (attempt?.number !== number || attempt.firstStepAtMs !== null) return;
  const first = rows.find(isStep);
  const step = first?.values.step;
  if (first === undefined || step === undefined) return;
  const { atMs } = first;
  await loop.run(caller, (draft, nowMs) =>
    applyJobEvent(draft, jobId, { kind: 'firstStep', attempt: number, nodeRank, step, atMs }, nowMs),
  );
}

/** A progress bar begins at 0 before anything is computed. A program that counts from 0 prints a loss with it. */
function isStep({ values: { step, train_loss }, lossNotFinite }: TrainingRow): boolean {
  return step !== undefined && (step > 0 || train_loss !== undefined || lossNotFinite);
}
