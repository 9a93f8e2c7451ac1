/** Stored events as CloudEvents 1.0 (https://github.com/cloudevents/spec, JSON format). */
import type { EventView } from '@muster/common/views';
import type { StoredEvent } from '../model.ts';

/** Extension attributes: `sequence` is the position in the cluster's log, `subjectsequence` that of the subject; `by` is the
 * caller and `peer` its address. */
export function cloudEventOf(clusterId: string, event: StoredEvent): Readonly<Record<string, unknown>> {
  return {
    specversion: '1.0',
    id: event.id,
    source: `/muster/${clusterId}`,
    type: `muster.${event.kind}`,
    subject: event.subject,
    time: new Date(event.timeMs).toISOString(),
    datacontenttype: 'application/json',
    sequence: String(event.seq),
    subjectsequence: String(event.subjectSeq),
    ...(event.by === '' ? {} : { by: event.by }),
    ...(event.peer === '' ? {} : { peer: event.peer }),
    data: event.data,
  };
}

export function eventView(clusterId: string, event: StoredEvent): EventView {
  const { seq, id, kind, subject, subjectSeq, timeMs } = event;
  return { seq, id, kind, subject, subjectSeq, timeMs, cloudEvent: cloudEventOf(clusterId, event) };
}
