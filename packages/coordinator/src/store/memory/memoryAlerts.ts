import { type AlertChanges, alertsCursorName, episodeKey, type StoredAlerts } from '../alerts.ts';
import type { Memory } from './memoryStore.ts';

export interface UndoableWriter {
  put<K, V>(map: Map<K, V>, key: K, value: V): void;
  remove<K, V>(map: Map<K, V>, key: K): void;
}

/** Writes what a batch changes of alerts. */
export function writeMemoryAlerts(memory: Memory, changes: AlertChanges, writer: UndoableWriter): void {
  const { alerts, alertEpisodes, alertSilences, meta } = memory;
  for (const name of changes.removedAlerts) writer.remove(alerts, name);
  for (const alert of changes.alerts) writer.put(alerts, alert.name, alert);
  for (const id of changes.removedAlertEpisodes) writer.remove(alertEpisodes, id);
  for (const episode of changes.alertEpisodes) writer.put(alertEpisodes, episodeKey(episode), episode);
  for (const alert of changes.removedAlertSilences) writer.remove(alertSilences, alert);
  for (const silence of changes.alertSilences) writer.put(alertSilences, silence.alert, silence);
  for (const seq of changes.alertsSeq) writer.put(meta, alertsCursorName, String(seq));
}

export function memoryAlertsOf({ alerts, alertEpisodes, alertSilences }: Memory): StoredAlerts {
  const byKey = <Value>(map: ReadonlyMap<string, Value>) =>
    [...map].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, value]) => value);
  return { rules: byKey(alerts), episodes: byKey(alertEpisodes), silences: byKey(alertSilences) };
}
