/** What users say of an alert, as a checked and complete definition. Pure: conditions are checked by a function that is passed in. */
import {
  type AlertDefinition,
  type AlertKind,
  type AlertScope,
  alertKinds,
  alertLabelsMax,
  alertMessageLengthMax,
  alertNameForm,
  alertNamePattern,
  alertSeverities,
} from '@muster/common/alerts';
import { isBuiltInAlert } from '@muster/common/builtInAlerts';
import { MusterError } from '@muster/common/errors';
import { formatDuration } from '@muster/common/spec/duration';
import { labelForm, labelPattern } from '@muster/common/spec/forms';
import { closest } from '@muster/common/spec/suggest';
import type { CheckedCondition } from './condition.ts';
import { messageProblem } from './messages.ts';
import { type KnownName, namesOfEvery, namesOfKind } from './names.ts';

export interface AlertWish {
  readonly name: string;
  readonly severity: string | null;
  readonly condition: string;
  readonly message: string | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly forMs: number;
  readonly repeatMs: number | null;
  /** null: by the names in the condition. */
  readonly scope: (Omit<AlertScope, 'kind'> & { readonly kind: string }) | null;
}

/** @throws {ConditionError} */
export type CheckCondition = (text: string, names: Readonly<Record<string, KnownName>>) => CheckedCondition;

const dayMs = 24 * 60 * 60_000;
const forMsMax = 30 * dayMs;
const repeatMsMin = 60_000;
const labelValueLengthMax = 200;
const scopeNodesMax = 1_000;

/** @throws {MusterError} `invalid`: it names the field, what is wrong, and what is expected */
export function definitionOf(wish: AlertWish, check: CheckCondition): AlertDefinition {
  const { name, condition, labels, forMs, repeatMs } = wish;
  if (!alertNamePattern.test(name)) throw invalid('name', `"${shortened(name)}" has not ${alertNameForm}`);
  if (isBuiltInAlert(name)) throw invalid('name', `"${name}" is the name of an alert that is built in`);
  const severity = alertSeverities.find((each) => each === (wish.severity ?? 'warning'));
  if (severity === undefined)
    throw invalid(
      'severity',
      `invalid severity "${shortened(wish.severity ?? '')}"; expected ${alertSeverities.join(', ')}`,
    );
  requireLabels('labels', labels, alertLabelsMax);
  requireDuration('for', forMs, 0, forMsMax);
  if (repeatMs !== null) requireDuration('repeat', repeatMs, repeatMsMin, forMsMax);
  const scope = scopeOf(wish, check);
  const message = messageOf(wish, scope.kind);
  return { name, severity, condition, message, labels, forMs, repeatMs, scope };
}

function scopeOf({ scope, condition }: AlertWish, check: CheckCondition): AlertScope {
  if (scope === null) {
    const kind = kindOf(condition, check);
    return { kind, jobId: null, labels: {}, project: null, nodes: [] };
  }
  const kind = alertKinds.find((each) => each === scope.kind);
  if (kind === undefined)
    throw invalid('scope', `invalid kind "${shortened(scope.kind)}"; expected ${alertKinds.join(', ')}`);
  requireLabels('scope', scope.labels, alertLabelsMax);
  if (scope.nodes.length > scopeNodesMax) throw invalid('scope', `more than ${scopeNodesMax} nodes`);
  const namesJobs = scope.jobId !== null || scope.project !== null || Object.keys(scope.labels).length > 0;
  if (kind !== 'job' && namesJobs) throw invalid('scope', `a scope of the kind ${kind} names no jobs`);
  if (kind !== 'node' && scope.nodes.length > 0)
    throw invalid('scope', `a scope of the kind ${kind} names no nodes`);
  checkedCondition(condition, kind, check);
  return { ...scope, kind };
}

/** That whose names it uses. What is wrong with it is said as of a condition about jobs, which nearly all are. */
function kindOf(condition: string, check: CheckCondition): AlertKind {
  const fitting = alertKinds.find((kind) => {
    try {
      check(condition, namesOfKind[kind]);
      return true;
    } catch {
      return false;
    }
  });
  if (fitting === undefined) checkedCondition(condition, 'job', check);
  return fitting ?? 'job';
}

/** @throws {MusterError} `invalid` */
function checkedCondition(condition: string, kind: AlertKind, check: CheckCondition): CheckedCondition {
  try {
    return check(condition, namesOfKind[kind]);
  } catch (error) {
    const { column, message } = error as { column?: number; message: string };
    throw invalid('condition', `${column === undefined ? '' : `column ${column}: `}${message}`);
  }
}

function messageOf({ message, condition }: AlertWish, kind: AlertKind): string {
  const text = message ?? condition.replaceAll(/[{}]/g, '').slice(0, alertMessageLengthMax);
  if (text.length > alertMessageLengthMax)
    throw invalid('message', `${text.length} characters; expected at most ${alertMessageLengthMax}`);
  const problem = messageProblem(text, { ...namesOfKind[kind], ...namesOfEvery });
  if (problem !== null) throw invalid('message', problem);
  return text;
}

function requireLabels(field: string, labels: Readonly<Record<string, string>>, max: number): void {
  const entries = Object.entries(labels);
  if (entries.length > max) throw invalid(field, `${entries.length} labels; expected at most ${max}`);
  for (const [name, value] of entries) {
    if (!labelPattern.test(name))
      throw invalid(field, `"${shortened(name)}": the name of a label has ${labelForm}`);
    if (value.length > labelValueLengthMax)
      throw invalid(field, `the value of ${name} has more than ${labelValueLengthMax} characters`);
  }
}

function requireDuration(field: string, ms: number, minMs: number, maxMs: number): void {
  if (Number.isSafeInteger(ms) && ms >= minMs && ms <= maxMs) return;
  throw invalid(field, `${ms} ms; expected ${formatDuration(minMs)} to ${formatDuration(maxMs)}`);
}

function shortened(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)} …` : text;
}

function invalid(field: string, message: string): MusterError {
  return new MusterError('invalid', `${field}: ${message}`);
}

/** @throws {MusterError} `not_found`, with the name that was probably meant */
export function unknownAlert(name: string, known: readonly string[]): MusterError {
  const meant = closest(name, known);
  const hint = meant === null ? '`muster alert list` lists them' : `did you mean "${meant}"?`;
  return new MusterError('not_found', `there is no alert ${shortened(name)}; ${hint}`);
}
