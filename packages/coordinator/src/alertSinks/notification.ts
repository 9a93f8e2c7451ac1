/** What somebody is told of an alert, from its event. Pure. */
import type { AlertKind, AlertSeverity } from '@muster/common/alerts';
import type { StoredEvent } from '../model.ts';

export interface AlertNotification {
  /** Of the event: the same in each try, so that receivers recognise a repetition. */
  readonly id: string;
  readonly status: 'firing' | 'resolved';
  /** It was notified before. */
  readonly isReminder: boolean;
  readonly alert: string;
  readonly severity: AlertSeverity;
  readonly message: string;
  readonly kind: AlertKind;
  /** A job's id, a node's name, or `cluster`. */
  readonly subject: string;
  readonly subjectName: string;
  /** Of a job. */
  readonly project: string | null;
  readonly labels: Readonly<Record<string, string>>;
  /** null: it is built in. */
  readonly owner: string | null;
  /** Unique for ever; that of the firing and of its end are the same. */
  readonly episode: string;
  /** Wall clock. */
  readonly firedAtMs: number;
  readonly atMs: number;
}

const notified = new Set(['alert.firing', 'alert.repeated', 'alert.resolved']);

/** @returns null: nobody is notified of this event */
export function notificationOf({ id, kind, data, timeMs }: StoredEvent): AlertNotification | null {
  if (!notified.has(kind) || data['silenced'] === true) return null;
  const { alert, severity, message, of, name, project, labels, owner, episode, firedAtMs } =
    data as unknown as FiringData;
  return {
    id,
    status: kind === 'alert.resolved' ? 'resolved' : 'firing',
    isReminder: kind === 'alert.repeated',
    alert,
    severity,
    message,
    kind: data['kind'] as AlertKind,
    subject: of,
    subjectName: name,
    project,
    labels,
    owner,
    episode,
    firedAtMs,
    atMs: timeMs,
  };
}

/** As `commands/alerts.ts` emits it. */
interface FiringData
  extends Pick<
    AlertNotification,
    'alert' | 'severity' | 'message' | 'project' | 'labels' | 'owner' | 'episode' | 'firedAtMs'
  > {
  readonly of: string;
  readonly name: string;
}

/** One line. */
export function titleOf({ status, isReminder, severity, alert, subjectName }: AlertNotification): string {
  const word = status === 'resolved' ? 'RESOLVED' : isReminder ? 'STILL FIRING' : 'FIRING';
  return `[${word}] ${severity}: ${alert} (${subjectName})`;
}
