/** Tells whoever follows metrics what has arrived, at the moment of its arrival. */
import type { JobId, NodeName } from '@muster/common/ids';
import type { Frame } from '../rows/rowFormat.ts';

export type Arrival =
  | { readonly kind: 'gpu'; readonly node: NodeName; readonly jobId: JobId }
  | { readonly kind: 'host'; readonly node: NodeName }
  | { readonly kind: 'cluster' }
  /** Rows of the output of a job, which are on disk. */
  | { readonly kind: 'rows'; readonly jobId: JobId; readonly frames: readonly Frame[] };

export class Arrivals {
  private readonly followers = new Set<(arrival: Arrival) => void>();

  /** @param onArrival must not wait @returns ends it */
  follow(onArrival: (arrival: Arrival) => void): () => void {
    this.followers.add(onArrival);
    return () => void this.followers.delete(onArrival);
  }

  arrived(arrival: Arrival): void {
    for (const onArrival of this.followers) onArrival(arrival);
  }
}
