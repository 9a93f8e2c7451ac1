/**
 * Alertmanager, by its API of version 2. It forgets an alert that nobody has sent for a while, and everything when it is restarted:
 * what fires is sent again every minute, each time with an end some minutes away, as Prometheus does.
 */
import type { AlertEpisode } from '@muster/common/alerts';
import type { AlertNotification } from './notification.ts';
import { post, type SafeTarget } from './safeRequest.ts';
import type { AlertSink } from './sink.ts';
import { requireTaken, timestampOf } from './webhooks.ts';

const refreshEveryMs = 60_000;
/** Three refreshes may get lost. */
const aliveMs = 4 * refreshEveryMs;

interface AlertmanagerAlert {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly startsAt: string;
  readonly endsAt: string;
}

export interface AlertmanagerParts {
  /** What fires and is not silenced, with what its rule says. */
  readonly firing: () => readonly FiringEpisode[];
  readonly wallMs: () => number;
  readonly clusterId: string;
}

export interface FiringEpisode
  extends Pick<AlertNotification, 'severity' | 'labels' | 'owner' | 'kind'>,
    Pick<AlertEpisode, 'alert' | 'subject' | 'subjectName' | 'project' | 'message' | 'firedAtMs'> {}

/** @param base without `/api/v2/alerts` */
export function alertmanagerSink(base: SafeTarget, parts: AlertmanagerParts): AlertSink {
  const url = new URL(base.url);
  url.pathname = `${url.pathname.replace(/\/$/, '')}/api/v2/alerts`;
  const target = { ...base, url };
  const closing = new AbortController();
  const send = async (alerts: readonly AlertmanagerAlert[], abort: AbortSignal) =>
    requireTaken(await post(target, JSON.stringify(alerts), { 'content-type': 'application/json' }, abort));
  const refresh = () => {
    const endsAtMs = parts.wallMs() + aliveMs;
    const alerts = parts.firing().map((each) => alertOf(parts.clusterId, each, endsAtMs));
    // The next refresh repairs one that failed, and what begins and ends is delivered beside.
    if (alerts.length > 0) send(alerts, closing.signal).catch(() => {});
  };
  const timer = setInterval(refresh, refreshEveryMs);
  timer.unref();
  return {
    kind: 'alertmanager',
    shown: `${url.protocol}//${url.host}`,
    identity: url.href,
    async deliver(notification, abort) {
      const { status, atMs } = notification;
      const endsAtMs = status === 'resolved' ? atMs : parts.wallMs() + aliveMs;
      await send([alertOf(parts.clusterId, notification, endsAtMs)], abort);
    },
    close() {
      clearInterval(timer);
      closing.abort();
    },
  };
}

/** The labels tell an alert from others, so they are the same in each message about it. */
function alertOf(clusterId: string, each: FiringEpisode, endsAtMs: number): AlertmanagerAlert {
  const own = Object.entries(each.labels).map(([name, value]) => [labelName(name), value] as const);
  return {
    labels: {
      ...Object.fromEntries(own),
      alertname: each.alert,
      severity: each.severity,
      cluster: clusterId,
      [each.kind === 'cluster' ? 'scope' : each.kind]: each.subject,
      ...(each.project === null ? {} : { project: each.project }),
    },
    annotations: {
      summary: each.message,
      name: each.subjectName,
      ...(each.owner === null ? {} : { owner: each.owner }),
    },
    startsAt: timestampOf(each.firedAtMs),
    endsAt: timestampOf(endsAtMs),
  };
}

/** Labels of Prometheus have letters, digits and underscores only. */
function labelName(name: string): string {
  return name.replaceAll(/[^A-Za-z0-9_]/g, '_').replace(/^(?=\d)/, '_');
}
