/** Statements about alerts: rules, episodes and silences, each with a key and its value as JSON. */
import type { AlertEpisode, AlertSilence } from '@muster/common/alerts';
import { episodeKey, type StoredAlert } from '../alerts.ts';

interface BodyRow {
  readonly body: string;
}

export const upsertAlertRule = {
  sql: /* sql */ `
    insert into alerts (name, body) values (:name, :body)
    on conflict (name) do update set body = excluded.body`,
  parameters: (alert: StoredAlert) => ({ name: alert.name, body: JSON.stringify(alert) }),
};

export const deleteAlertRule = { sql: /* sql */ `delete from alerts where name = :name` };

export const selectAlertRules = {
  sql: /* sql */ `select body from alerts order by name`,
  fromRow: ({ body }: BodyRow) => JSON.parse(body) as StoredAlert,
};

export const upsertAlertEpisode = {
  sql: /* sql */ `
    insert into alert_episodes (id, body) values (:id, :body)
    on conflict (id) do update set body = excluded.body`,
  parameters: (episode: AlertEpisode) => ({ id: episodeKey(episode), body: JSON.stringify(episode) }),
};

export const deleteAlertEpisode = { sql: /* sql */ `delete from alert_episodes where id = :id` };

export const selectAlertEpisodes = {
  sql: /* sql */ `select body from alert_episodes order by id`,
  fromRow: ({ body }: BodyRow) => JSON.parse(body) as AlertEpisode,
};

export const upsertAlertSilence = {
  sql: /* sql */ `
    insert into alert_silences (alert, body) values (:alert, :body)
    on conflict (alert) do update set body = excluded.body`,
  parameters: (silence: AlertSilence) => ({ alert: silence.alert, body: JSON.stringify(silence) }),
};

export const deleteAlertSilence = { sql: /* sql */ `delete from alert_silences where alert = :alert` };

export const selectAlertSilences = {
  sql: /* sql */ `select body from alert_silences order by alert`,
  fromRow: ({ body }: BodyRow) => JSON.parse(body) as AlertSilence,
};
