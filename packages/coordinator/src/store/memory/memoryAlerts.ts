import { type AlertChanges, alertsCursorName, episodeKey } from '../alerts.ts';
import type { Memory } from './memoryStore.ts';

interface UndoableWriter {
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
