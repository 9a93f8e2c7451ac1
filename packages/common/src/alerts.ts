/** Alerts: rules that people set, and what fires by them. What the API shows of both; `-o json` prints these. */

export const alertSeverities = ['info', 'warning', 'critical'] as const;
export type AlertSeverity = (typeof alertSeverities)[number];

/** What a rule looks at: each job of its scope, each node, or the cluster as one. */
export const alertKinds = ['job', 'node', 'cluster'] as const;
export type AlertKind = (typeof alertKinds)[number];

/** A condition becomes true for each of these on its own. What is null or empty does not narrow. */
export interface AlertScope {
  readonly kind: AlertKind;
  /** Of jobs: this one only. */
  readonly jobId: string | null;
  /** Of jobs: those that have all of these labels. */
  readonly labels: Readonly<Record<string, string>>;
  /** Of jobs: those of this project. */
  readonly project: string | null;
  /** Of nodes: these only. */
  readonly nodes: readonly string[];
}

/** A rule, as its user defines it. */
export interface AlertDefinition {
  /** Unique in the cluster, and part of the URLs of others: 1 to 128 letters, digits, `_`, `-`, `.`. */
  readonly name: string;
  readonly severity: AlertSeverity;
  /** In CEL. */
  readonly condition: string;
  /** With names of values in braces. */
  readonly message: string;
  /** For those who are notified, who route by them. */
  readonly labels: Readonly<Record<string, string>>;
  /** The condition must hold for this duration before the alert fires. */
  readonly forMs: number;
  /** Notifies again after this duration while it fires. null: notifies once. */
  readonly repeatMs: number | null;
  readonly scope: AlertScope;
}

/** One time during which a condition holds for one job or node, or for the cluster. */
export interface AlertEpisode {
  /** The alert, and the number of the event with which it began to fire: unique for ever. */
  readonly id: string;
  readonly alert: string;
  /** A job's id, a node's name, or `cluster`. */
  readonly subject: string;
  /** The name of the job; of others the subject. */
  readonly subjectName: string;
  /** Of a job. */
  readonly project: string | null;
  /** With the values of that moment. */
  readonly message: string;
  readonly firedAtMs: number;
  /** When somebody was last to be notified. null: it has been silenced from the beginning. */
  readonly notifiedAtMs: number | null;
  /** Wall clock. null: nobody has. */
  readonly acknowledgedAtMs: number | null;
  readonly acknowledgedBy: string | null;
}

/** Notifies nobody until then. */
export interface AlertSilence {
  readonly alert: string;
  readonly untilMs: number;
  readonly by: string;
  readonly reason: string;
}

export interface AlertView extends AlertDefinition {
  /** Who set it. null: it is built in. */
  readonly owner: string | null;
  readonly builtIn: boolean;
  readonly createdAtMs: number | null;
  readonly silence: AlertSilence | null;
  /** What fires now, longest first. */
  readonly firing: readonly AlertEpisode[];
  /** How many wait until the condition has held for long enough. */
  readonly pending: number;
}

export const alertNamePattern = /^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,126}[A-Za-z0-9])?$/;
export const alertNameForm =
  '1 to 128 letters, digits, "_", "-" and ".", with a letter or digit at both ends';

/** Characters. */
export const conditionLengthMax = 1_000;
export const alertMessageLengthMax = 500;
export const alertLabelsMax = 32;
