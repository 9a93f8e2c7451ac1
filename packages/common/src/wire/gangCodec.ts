/** Messages of gangs ↔ words of the domain. */
import {
  type Endpoint,
  failureSources,
  type PathBandwidth,
  type PathCheck,
  type PathFindings,
  type PathResult,
  type PreflightResult,
  preflightBackends,
  type TaskFailure,
} from '../gangs.ts';
import type { TaskRef } from '../ids.ts';
import { blames, causeKinds } from '../spec/causes.ts';
import { knownWord, message, needed, type Sent, skip, word } from './mapping.ts';
import { taskRefToWire } from './taskRef.ts';

export const { toWire: endpointToWire, fromWire: endpointFromWire } = message<Endpoint>()('Endpoint');

const preflight = message<NonNullable<PathCheck['preflight']>>()('Preflight', {
  master: needed(message<NonNullable<PathCheck['preflight']>['master']>()('Master')),
});
const check = message<PathCheck>()('Check', { task: skip, preflight });
export const { fromWire: checkFromWire } = check;

export function checkToWire(task: TaskRef, value: PathCheck): Sent<'Check'> {
  return { ...check.toWire(value), task: taskRefToWire(task) };
}

const backend = word(preflightBackends, 'tcp');
const findings = message<PathFindings>()('Checked', {
  task: skip,
  paths: message<PathResult>()('PathResult'),
  preflight: message<PreflightResult>()('PreflightResult', { backend }),
});
export const { fromWire: findingsFromWire } = findings;

export function findingsToWire(task: TaskRef, value: PathFindings): Sent<'Checked'> {
  return { ...findings.toWire(value), task: taskRefToWire(task) };
}

export const taskFailure = message<TaskFailure>()('TaskFailure', {
  source: word(failureSources, 'exit'),
  kind: word(causeKinds, 'unknown'),
  blame: knownWord(blames),
});
export const pathBandwidth = message<PathBandwidth>()('PathBandwidth', { backend });
