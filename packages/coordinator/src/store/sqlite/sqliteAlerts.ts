/** Alerts in SQLite. */
import type { SQLInputValue } from 'node:sqlite';
import { type AlertChanges, alertsCursorName, type StoredAlerts } from '../alerts.ts';
import {
  deleteAlertEpisode,
  deleteAlertRule,
  deleteAlertSilence,
  selectAlertEpisodes,
  selectAlertRules,
  selectAlertSilences,
  upsertAlertEpisode,
  upsertAlertRule,
  upsertAlertSilence,
} from '../statements/alerts.ts';
import { upsertMeta } from '../statements/cluster.ts';

/** Writes what a batch changes of alerts, within its transaction. */
export function writeAlerts(
  run: (sql: string, parameters: Record<string, SQLInputValue>) => void,
  changes: AlertChanges,
): void {
  for (const name of changes.removedAlerts) run(deleteAlertRule.sql, { name });
  for (const alert of changes.alerts) run(upsertAlertRule.sql, upsertAlertRule.parameters(alert));
  for (const id of changes.removedAlertEpisodes) run(deleteAlertEpisode.sql, { id });
  for (const episode of changes.alertEpisodes)
    run(upsertAlertEpisode.sql, upsertAlertEpisode.parameters(episode));
  for (const alert of changes.removedAlertSilences) run(deleteAlertSilence.sql, { alert });
  for (const silence of changes.alertSilences)
    run(upsertAlertSilence.sql, upsertAlertSilence.parameters(silence));
  for (const seq of changes.alertsSeq) run(upsertMeta.sql, { name: alertsCursorName, value: String(seq) });
}

export function loadAlerts(rows: (sql: string) => { readonly body: string }[]): StoredAlerts {
  return {
    rules: rows(selectAlertRules.sql).map(selectAlertRules.fromRow),
    episodes: rows(selectAlertEpisodes.sql).map(selectAlertEpisodes.fromRow),
    silences: rows(selectAlertSilences.sql).map(selectAlertSilences.fromRow),
  };
}
