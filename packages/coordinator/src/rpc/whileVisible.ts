/** Streams about one job, which end when the job becomes invisible to anyone who reads them: its project may be made private. */
import { clusterSubject } from '@muster/common/eventKinds';
import type { JobId } from '@muster/common/ids';
import { mayUseEveryJob } from '../auth/access.ts';
import type { Identity } from '../caller.ts';
import type { CommitNotifier } from '../events/notices.ts';
import { unknownJob } from './references.ts';
import { asReader, mayUseJob, type VisibleParts } from './visibleJobs.ts';

/**
 * What a stream yields while its caller may read the job. That the caller themselves may do less ends it in `auth/gate.ts`.
 * @param jobId null: the stream is not about one job
 * @param produce ends soon after its signal is aborted
 * @throws {MusterError} `not_found` once the job is hidden, as for the next call
 */
export async function* whileVisible<T>(
  parts: VisibleParts & { readonly committed: Pick<CommitNotifier, 'next'> },
  caller: Identity,
  jobId: JobId | null,
  abort: AbortSignal,
  produce: (signal: AbortSignal) => AsyncIterable<T>,
): AsyncGenerator<T> {
  if (jobId === null || mayUseEveryJob(caller)) {
    yield* produce(abort);
    return;
  }
  const over = new AbortController();
  const signal = AbortSignal.any([abort, over.signal]);
  let isHidden = false;
  const watching = (async () => {
    while (!signal.aborted) {
      await parts.committed.next(signal, clusterSubject);
      if (signal.aborted || (await mayUseJob(parts, asReader(caller), jobId))) continue;
      isHidden = true;
      over.abort();
    }
  })();
  try {
    for await (const each of produce(signal)) {
      if (isHidden) break;
      yield each;
    }
  } finally {
    over.abort();
    await watching;
  }
  if (isHidden) throw unknownJob(jobId);
}
