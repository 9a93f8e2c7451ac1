/** Alerts in the state: rules of users, what fires, what is silenced; and what a draft changes of them. */
import type { AlertEpisode, AlertSilence } from '@muster/common/alerts';
import { type AlertChanges, episodeKey, type StoredAlert, type StoredAlerts } from '../store/alerts.ts';
import { applyChanges, removedOf } from './committed.ts';
import type { SetUndoably } from './people.ts';

export interface Alerts {
  /** Rules of users, by name. */
  readonly rules: Map<string, StoredAlert>;
  /** What fires, by `episodeKey`. */
  readonly episodes: Map<string, AlertEpisode>;
  /** By the name of the alert. One that is over may still be there. */
  readonly silences: Map<string, AlertSilence>;
}

export function alertsOf({ rules, episodes, silences }: StoredAlerts): Alerts {
  return {
    rules: new Map(rules.map((rule) => [rule.name, rule])),
    episodes: new Map(episodes.map((episode) => [episodeKey(episode), episode])),
    silences: new Map(silences.map((silence) => [silence.alert, silence])),
  };
}

export class DraftedAlerts {
  /** Changed ones by their keys; null: removed. */
  private readonly rules = new Map<string, StoredAlert | null>();
  private readonly episodes = new Map<string, AlertEpisode | null>();
  private readonly silences = new Map<string, AlertSilence | null>();
  private readonly seqs = new Map<'seq', number>();
  private readonly base: Alerts;
  private readonly set: SetUndoably;

  constructor(base: Alerts, set: SetUndoably) {
    this.base = base;
    this.set = set;
  }

  rule(name: string): StoredAlert | undefined {
    const drafted = this.rules.get(name);
    return drafted === undefined ? this.base.rules.get(name) : (drafted ?? undefined);
  }

  everyRule(): readonly StoredAlert[] {
    const names = new Set([...this.base.rules.keys(), ...this.rules.keys()]);
    return [...names].flatMap((name) => this.rule(name) ?? []);
  }

  putRule(rule: StoredAlert): void {
    this.set(this.rules, rule.name, rule);
  }

  removeRule(name: string): void {
    this.set(this.rules, name, null);
  }

  episode(key: Parameters<typeof episodeKey>[0]): AlertEpisode | undefined {
    const id = episodeKey(key);
    const drafted = this.episodes.get(id);
    return drafted === undefined ? this.base.episodes.get(id) : (drafted ?? undefined);
  }

  /** Those of one alert that fire. */
  episodesOf(alert: string): readonly AlertEpisode[] {
    const ids = new Set([...this.base.episodes.keys(), ...this.episodes.keys()]);
    return [...ids]
      .filter((id) => id.startsWith(`${alert}/`))
      .flatMap((id) => {
        const drafted = this.episodes.get(id);
        return drafted === undefined ? (this.base.episodes.get(id) ?? []) : (drafted ?? []);
      });
  }

  putEpisode(episode: AlertEpisode): void {
    this.set(this.episodes, episodeKey(episode), episode);
  }

  removeEpisode(key: Parameters<typeof episodeKey>[0]): void {
    this.set(this.episodes, episodeKey(key), null);
  }

  silence(alert: string): AlertSilence | undefined {
    const drafted = this.silences.get(alert);
    return drafted === undefined ? this.base.silences.get(alert) : (drafted ?? undefined);
  }

  putSilence(silence: AlertSilence): void {
    this.set(this.silences, silence.alert, silence);
  }

  removeSilence(alert: string): void {
    this.set(this.silences, alert, null);
  }

  /** All events up to this one are dealt with. */
  dealtWith(seq: number): void {
    this.set(this.seqs, 'seq', seq);
  }

  toBatch(): AlertChanges {
    return {
      alerts: [...this.rules.values()].filter((rule) => rule !== null),
      removedAlerts: removedOf(this.rules),
      alertEpisodes: [...this.episodes.values()].filter((episode) => episode !== null),
      removedAlertEpisodes: removedOf(this.episodes),
      alertSilences: [...this.silences.values()].filter((silence) => silence !== null),
      removedAlertSilences: removedOf(this.silences),
      alertsSeq: [...this.seqs.values()],
    };
  }

  /** After the commit. @returns names of rules that have changed */
  apply(): readonly string[] {
    applyChanges(this.base.rules, this.rules);
    applyChanges(this.base.episodes, this.episodes);
    applyChanges(this.base.silences, this.silences);
    return [...this.rules.keys()];
  }
}
