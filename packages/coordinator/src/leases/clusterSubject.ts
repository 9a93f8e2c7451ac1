/** Events about the cluster as a whole. */
import type { ClusterState } from '../state.ts';
import type { Store } from '../store/store.ts';

export const clusterSubject = 'cluster';

const pageSize = 1_000;

/** Goes on numbering these events where the coordinator before us ended: a snapshot has jobs and nodes only. */
export async function followClusterEvents(
  state: Pick<ClusterState, 'subjectSeqs'>,
  store: Pick<Store, 'readEvents'>,
): Promise<void> {
  let sinceSeq = 0;
  for (;;) {
    const events = await store.readEvents(sinceSeq, pageSize, clusterSubject);
    const last = events.at(-1);
    if (last === undefined) return;
    state.subjectSeqs.set(clusterSubject, last.subjectSeq);
    sinceSeq = last.seq;
  }
}
