/** What every store must do about alerts. */
import type { AlertEpisode } from '@muster/common/alerts';
import { describe, expect, it } from 'vitest';
import { someMs } from '../modelFixture.ts';
import { alertsCursorName, type StoredAlert } from './alerts.ts';
import type { Batch, Store } from './store.ts';

function anAlert(name: string, fields: Partial<StoredAlert> = {}): StoredAlert {
  return {
    name,
    severity: 'warning',
    condition: 'hung',
    message: '{workload_name} hangs',
    labels: { team: 'vision' },
    forMs: 60_000,
    repeatMs: null,
    scope: { kind: 'job', jobId: null, labels: {}, project: 'lab', nodes: [] },
    owner: 'ann',
    createdAtMs: someMs,
    ...fields,
  };
}

function anEpisode(alert: string, subject: string, fields: Partial<AlertEpisode> = {}): AlertEpisode {
  return {
    id: `${alert}-7`,
    alert,
    subject,
    subjectName: 'train',
    project: null,
    message: 'train hangs',
    firedAtMs: someMs,
    notifiedAtMs: null,
    acknowledgedAtMs: null,
    acknowledgedBy: null,
    ...fields,
  };
}

/** @param reopened what the store keeps, as it is after a restart */
export function describeAlerts(
  commit: (batch: Partial<Batch>) => Promise<void>,
  reopened: () => Promise<Store>,
): void {
  describe('of alerts keeps', () => {
    it('rules, episodes and silences as they were last, until they are removed, and how far events were looked at', async () => {
      const silence = { alert: 'a', untilMs: someMs, by: 'ann', reason: '' };
      await commit({
        alerts: [anAlert('a'), anAlert('b')],
        alertEpisodes: [anEpisode('a', 'job_1'), anEpisode('a', 'job_2')],
        alertSilences: [silence, { ...silence, alert: 'b' }],
        alertsSeq: [7],
      });
      const changed = anEpisode('a', 'job_1', { notifiedAtMs: someMs, acknowledgedBy: 'bob' });
      await commit({
        alerts: [anAlert('b', { severity: 'critical' })],
        alertEpisodes: [changed],
        removedAlertEpisodes: ['a/job_2', 'a/nothing'],
        removedAlerts: ['nothing'],
        removedAlertSilences: ['b', 'nothing'],
        alertsSeq: [9],
      });
      const store = await reopened();
      expect((await store.load()).alerts).toEqual({
        rules: [anAlert('a'), anAlert('b', { severity: 'critical' })],
        episodes: [changed],
        silences: [silence],
      });
      expect(await store.readMeta(alertsCursorName)).toBe('9');
    });
  });
}
