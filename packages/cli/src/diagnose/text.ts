/** A diagnosis for people. Pure. */
import type { Diagnosis, MetricRow, RetryAdvice } from '@muster/diagnosis/words';
import type { Colours } from '../output/colours.ts';
import { formatFields } from '../output/fields.ts';
import { count } from '../output/text.ts';

const retryTexts: Readonly<Record<RetryAdvice, string>> = {
  no: 'no: it would fail in the same way',
  after_change: 'after a change',
  same_node: 'yes, on the same node too',
  other_node: 'on another node',
  previous_checkpoint: 'from the checkpoint before',
  rollback: 'from a checkpoint before the trouble began',
  resume: 'from its newest checkpoint',
  none: 'not needed',
};

/** @param title null: none */
export function formatDiagnosis(diagnosis: Diagnosis, title: string | null, colours: Colours): string {
  const { state, cause, blame, evidence, retry, advice, framework, metrics } = diagnosis;
  const fields = formatFields(
    [
      ['State', state],
      ['Cause', cause ?? 'none: no sign of a failure found'],
      ['Blame', blame],
      ['Evidence', evidenceLine(evidence)],
      ['Retry', retry === null ? null : retryTexts[retry]],
      ['Advice', advice],
      ['Framework', framework],
      ['Metrics', metrics.rows === 0 ? null : count(metrics.rows, 'line')],
      ['First', metrics.first === null ? null : valuesText(metrics.first)],
      ['Last', metrics.last === null ? null : valuesText(metrics.last)],
    ],
    colours,
  );
  return title === null ? fields : `${colours.bold(title)}\n\n${fields}`;
}

function evidenceLine(evidence: Diagnosis['evidence']): string | null {
  if (evidence === null) return null;
  const { line, rank, text } = evidence;
  const where = [line === null ? null : `line ${line}`, rank === null ? null : `rank ${rank}`].filter(
    (part) => part !== null,
  );
  return where.length === 0 ? text : `${where.join(', ')}: ${text}`;
}

function valuesText(values: MetricRow['values']): string {
  return Object.entries(values)
    .map(([name, value]) => `${name} ${value ?? 'unknown'}`)
    .join('  ');
}
