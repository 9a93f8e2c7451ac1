/** The conditions of triggers by events, over what an event has. The library behind them is loaded with the first one. */
import { MusterError } from '@muster/common/errors';
import type { CheckedCondition } from '../alerts/condition.ts';
import type { KnownName } from '../alerts/names.ts';
import { SubjectValues } from '../alerts/subjectValues.ts';
import type { Job, StoredEvent } from '../model.ts';

/** Part of the API: a name never changes its meaning. `docs/pipelines.md` lists them. */
export const eventNames = {
  kind: { type: 'string', meaning: 'its kind, such as `job.succeeded`' },
  subject: { type: 'string', meaning: 'id of the job that it is about, or `cluster`' },
  job: {
    type: 'string',
    meaning: 'name of that job, also of the one that an alert is about; empty: it is about none',
  },
  user: { type: 'string', meaning: 'who the job, the sweep or the run belongs to' },
  labels: { type: 'map(string, string)', meaning: 'of the job: `labels.team`' },
  data: { type: 'map(string, string)', meaning: 'members of its data, as texts: `data.state`' },
} as const satisfies Readonly<Record<string, KnownName>>;

/** @throws {MusterError} `invalid`, with the column */
export async function eventConditionOf(text: string): Promise<CheckedCondition> {
  const { checkCondition } = await import('../alerts/condition.ts');
  try {
    return checkCondition(text, eventNames);
  } catch (error) {
    const { column, message } = error as { column?: number; message: string };
    const problem = {
      path: 'condition',
      message: `column ${column ?? 1}: ${message}`,
      expected: null,
      suggestion: null,
    };
    throw new MusterError('invalid', `condition: ${problem.message}`, { problems: [problem], cause: error });
  }
}

export type SeenEvent = Pick<StoredEvent, 'kind' | 'subject' | 'seq' | 'timeMs' | 'data'>;

/** @param job that the event is about. null: none */
export function eventFacts({ kind, subject, seq, data }: SeenEvent, job: Job | null) {
  const user = job?.user ?? data['user'];
  return {
    kind,
    subject,
    seq,
    job: job?.spec.name ?? '',
    user: typeof user === 'string' ? user : '',
    labels: job?.spec.labels ?? {},
    data,
  };
}

/** What is not known holds for nothing. */
export function eventHolds(condition: CheckedCondition, event: SeenEvent, job: Job | null): boolean {
  const { data, ...facts } = eventFacts(event, job);
  const texts = Object.entries(data).flatMap(([name, value]): [string, string][] =>
    typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
      ? [[name, String(value)]]
      : [],
  );
  const known: Readonly<Record<string, unknown>> = { ...facts, data: Object.fromEntries(texts) };
  const values = new SubjectValues((name) => (known[name] as string | undefined) ?? null);
  return condition.evaluate(values) === true;
}
