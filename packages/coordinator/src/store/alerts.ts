/** Alerts as a store keeps them: the rules of users, what fires, and what is silenced. */
import type { AlertDefinition, AlertEpisode, AlertSilence } from '@muster/common/alerts';

/** A rule that a user has set. */
export interface StoredAlert extends AlertDefinition {
  /** A user, or the built-in admin. */
  readonly owner: string;
  readonly createdAtMs: number;
}

export interface StoredAlerts {
  readonly rules: readonly StoredAlert[];
  readonly episodes: readonly AlertEpisode[];
  readonly silences: readonly AlertSilence[];
}

export const noStoredAlerts: StoredAlerts = { rules: [], episodes: [], silences: [] };

/** What a batch changes of them. One to remove that is not there is no error. */
export interface AlertChanges {
  readonly alerts: readonly StoredAlert[];
  /** Names. */
  readonly removedAlerts: readonly string[];
  /** New ones, and those that were acknowledged or notified again. */
  readonly alertEpisodes: readonly AlertEpisode[];
  /** Those that are over, as `episodeKey` names them. */
  readonly removedAlertEpisodes: readonly string[];
  readonly alertSilences: readonly AlertSilence[];
  /** Names of alerts. */
  readonly removedAlertSilences: readonly string[];
  /** One at most: all events up to this one are dealt with, and what fired by them is stored. */
  readonly alertsSeq: readonly number[];
}

export const noAlertChanges: AlertChanges = {
  alerts: [],
  removedAlerts: [],
  alertEpisodes: [],
  removedAlertEpisodes: [],
  alertSilences: [],
  removedAlertSilences: [],
  alertsSeq: [],
};

/** The name under which the store keeps the number of the last event that alerts have dealt with. */
export const alertsCursorName = 'alerts_cursor';

/** An alert fires once at a time for each subject. No name of either has a slash. */
export function episodeKey({ alert, subject }: Pick<AlertEpisode, 'alert' | 'subject'>): string {
  return `${alert}/${subject}`;
}
