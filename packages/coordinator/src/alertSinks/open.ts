/** The sinks that are configured. Each is loaded only where it is: the library for mail costs memory. */

import type { AlertSinkSettings } from '@muster/common/alertSinkSettings';
import { builtInAlerts, isBuiltInAlert } from '@muster/common/builtInAlerts';
import type { ClusterState } from '../state/state.ts';
import { alertmanagerSink, type FiringEpisode } from './alertmanager.ts';
import { checkedTarget, trustedWith } from './safeRequest.ts';
import type { AlertSink } from './sink.ts';
import { slackSink, webhookSink } from './webhooks.ts';

/** @throws {MusterError} `invalid` for an address that is none, or not allowed */
export async function openSinks(
  settings: AlertSinkSettings,
  {
    state,
    wallMs,
  }: { readonly state: Pick<ClusterState, 'alerts' | 'clusterId'>; readonly wallMs: () => number },
): Promise<readonly AlertSink[]> {
  const { webhook, slackUrl, alertmanagerUrl, mail, allowsPrivate } = settings;
  const { clusterId } = state;
  const trust = { ca: settings.ca === null ? null : trustedWith(settings.ca) };
  const sinks: AlertSink[] = [];
  if (webhook !== null) {
    const target = checkedTarget('the address of the webhook', webhook.url, allowsPrivate);
    sinks.push(webhookSink({ ...target, ...trust }, webhook.secret, wallMs));
  }
  if (slackUrl !== null)
    sinks.push(slackSink({ ...checkedTarget('the address of Slack', slackUrl, allowsPrivate), ...trust }));
  if (alertmanagerUrl !== null) {
    const target = checkedTarget('the address of Alertmanager', alertmanagerUrl, allowsPrivate);
    const firing = () => firingNow(state, wallMs());
    sinks.push(alertmanagerSink({ ...target, ...trust }, { firing, wallMs, clusterId }));
  }
  if (mail !== null) {
    const { mailSink } = await import('./mail.ts');
    sinks.push(mailSink({ ...mail, ...trust, allowsPrivate }, clusterId));
  }
  return sinks;
}

/** What fires, was notified, and is not silenced now. */
function firingNow({ alerts }: Pick<ClusterState, 'alerts'>, nowMs: number): readonly FiringEpisode[] {
  return [...alerts.episodes.values()].flatMap((episode): FiringEpisode[] => {
    const { alert } = episode;
    const silencedUntilMs = alerts.silences.get(alert)?.untilMs ?? 0;
    if (episode.notifiedAtMs === null || nowMs < silencedUntilMs) return [];
    const rule = alerts.rules.get(alert);
    if (rule !== undefined) {
      const { severity, labels, owner, scope } = rule;
      return [{ ...episode, severity, labels, owner, kind: scope.kind }];
    }
    if (!isBuiltInAlert(alert)) return [];
    const { severity, kind } = builtInAlerts[alert];
    return [{ ...episode, severity, labels: {}, owner: null, kind }];
  });
}
