/** Events as CloudEvents 1.0 (https://github.com/cloudevents/spec, JSON format). */
import { isJobId } from '@muster/common/ids';
import { traceIdOf } from '@muster/common/traceContext';
import type { EventView } from '@muster/common/views';
import type { StoredEvent } from '../model.ts';
import type { WatchedNotice } from './watch.ts';

/** Extension attributes: `sequence` is the position in the cluster's log, `subjectsequence` that of the subject; `by` is the
 * caller and `peer` its address; `traceid` is the trace of its job. */
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
    ...(isJobId(event.subject) ? { traceid: traceIdOf(event.subject, event.traceparent) } : {}),
    data: event.data,
  };
}

export function eventView(clusterId: string, event: StoredEvent): EventView {
  const { seq, id, kind, subject, subjectSeq, timeMs } = event;
  return { seq, id, kind, subject, subjectSeq, timeMs, cloudEvent: cloudEventOf(clusterId, event) };
}

/** A notice is not stored and has no sequence number of its own: it shows the one from which a watch continues, and 0 as its
 * number within its subject. It is not part of a trace. */
export function noticeView(
  clusterId: string,
  { notice: { number, kind, subject, timeMs, data }, position }: WatchedNotice,
): EventView {
  const event = {
    seq: position,
    id: `${clusterId}-${position}-notice-${timeMs}-${number}`,
    kind,
    subject,
    subjectSeq: 0,
    timeMs,
    by: '',
    peer: '',
    data,
  };
  const { sequence: _, subjectsequence: __, traceid: ___, ...cloudEvent } = cloudEventOf(clusterId, event);
  return { ...eventView(clusterId, event), cloudEvent };
}
