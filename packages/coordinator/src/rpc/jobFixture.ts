/** Jobs of a coordinator without agents, for tests: submitted by the API, and begun and ended by hand. */

import type { JobId } from '@muster/common/ids';
import { musterService } from '@muster/common/wire/service';
import { report } from '../commands/nodes.ts';
import { type TestCoordinator, withToken } from '../coordinatorFixture.ts';
import { aCaller, allocation, aNode, anExit, aReport } from '../modelFixture.ts';
import { applyJobEvent } from '../state/applyJobEvent.ts';

export const specJson = JSON.stringify({ name: 'train', command: ['true'] });

export async function submitJob(
  { api }: TestCoordinator,
  requestId: string,
  spec = specJson,
): Promise<JobId> {
  const { jobIds } = await api.submit({ specJson: spec, requestId });
  return jobIds[0] as JobId;
}

let submits = 0;

/** Submits a job by gRPC with these headers beside the token. */
export function submitWith(
  { adminToken, client }: TestCoordinator,
  headers: Readonly<Record<string, string>>,
): Promise<JobId> {
  const { path, requestSerialize, responseDeserialize } = musterService.Submit;
  submits += 1;
  const request = { specJson, requestId: `with-headers-${submits}` };
  const metadata = withToken(adminToken, headers);
  return new Promise((resolve, reject) => {
    const answered = (error: Error | null, answer?: { readonly jobIds: readonly string[] }) =>
      answer === undefined ? reject(error ?? new Error('no answer')) : resolve(answer.jobIds[0] as JobId);
    client().makeUnaryRequest(path, requestSerialize, responseDeserialize, request, metadata, answered);
  });
}

/** Gives a queued job an attempt with one task that runs on node-1. */
export async function startJob(
  { loop }: TestCoordinator,
  jobId: JobId,
  gpuUuids: readonly string[] = [],
): Promise<void> {
  await loop.run(aCaller, (draft, nowMs) => {
    if (draft.node(aNode('node-1').name) === undefined) draft.putNode(aNode('node-1'));
    const placement = { node: aNode('node-1').name, gpuUuids, cpus: 0, memoryMb: 0 };
    applyJobEvent(draft, jobId, allocation([placement]), nowMs);
    const master = { addr: '127.0.0.1', port: 1 };
    const attempt = draft.job(jobId)?.lastAttempt ?? 0;
    const prepared = {
      kind: 'prepared',
      attempt,
      nodeRank: 0,
      master,
      endpoints: [],
      testPort: null,
    } as const;
    applyJobEvent(draft, jobId, prepared, nowMs);
    applyJobEvent(draft, jobId, { kind: 'taskRunning', attempt, nodeRank: 0 }, nowMs);
  });
}

/** Its task ends well. */
export async function finishJob({ loop }: TestCoordinator, jobId: JobId, attempt = 1): Promise<void> {
  const task = { jobId, attempt, nodeRank: 0 };
  const ended = aReport(task, { state: 'ended', exit: anExit() });
  await loop.run(aCaller, (draft, nowMs) => report(draft, aNode('node-1').name, [ended], () => null, nowMs));
}
