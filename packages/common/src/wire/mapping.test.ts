/** Values of every message, made by chance from its description, through bytes and back. */
import { describe, expect, test } from 'vitest';
import type { Drain } from '../views.ts';
import {
  checkpointSeenFromWire,
  checkpointSeenToWire,
  conditionFromWire,
  conditionToWire,
  endpointFromWire,
  endpointToWire,
  eventFromWire,
  eventToWire,
  findingsFromWire,
  findingsToWire,
  jobFromWire,
  jobToWire,
  logPieceFromWire,
  logPieceToWire,
  metricsFromWire,
  metricsToWire,
  nodeFromWire,
  nodeTelemetryFromWire,
  nodeTelemetryToWire,
  nodeToWire,
  pathCheckFromWire,
  pathCheckToWire,
  taskReportFromWire,
  taskReportToWire,
} from './codec.ts';
import { type MessageName, message, without } from './mapping.ts';
import { type MessageType, messageToObject, messageType } from './service.ts';

const task = { jobId: 'job_0123456789ab' as never, attempt: 1, nodeRank: 0 };

type AnyMapping = readonly [MessageName, (value: never) => object, (wire: never) => unknown];
const mappings: readonly AnyMapping[] = [
  ['Job', jobToWire, jobFromWire],
  ['Node', nodeToWire, nodeFromWire],
  ['TaskReport', taskReportToWire, taskReportFromWire],
  ['Event', eventToWire, eventFromWire],
  ['LogPiece', logPieceToWire, logPieceFromWire],
  ['Condition', conditionToWire, conditionFromWire],
  ['Endpoint', endpointToWire, endpointFromWire],
  ['PathCheck', pathCheckToWire, pathCheckFromWire],
  ['PathFindings', findingsToWire, findingsFromWire],
  ['CheckpointSeen', checkpointSeenToWire, checkpointSeenFromWire],
  ['NodeTelemetry', nodeTelemetryToWire, nodeTelemetryFromWire],
  ['QueryMetricsResponse', metricsToWire, metricsFromWire],
];

/** Of a linear congruential generator, so that a failure can be seen again. */
function chances(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** A message with each of its fields absent, the value that a default has, or another one. */
function chanceMessage(type: MessageType, chance: (below: number) => number, depth = 0): object {
  const one = (field: MessageType['fieldsArray'][number]): unknown => {
    const { name, type: kind, resolvedType } = field;
    if (resolvedType !== null && 'fieldsArray' in resolvedType)
      return chanceMessage(resolvedType, chance, depth + 1);
    if (resolvedType !== null) return chance(7);
    if (name === 'jobId') return task.jobId;
    if (name === 'spec' || name === 'cloudEvent') return '{"a":[null,0,""]}';
    if (kind === 'string') return ['', 'x', 'unknown'][chance(3)];
    if (kind === 'bool') return chance(2) === 1;
    if (kind === 'bytes') return Buffer.from([chance(256)]);
    if (kind === 'double' || kind === 'float') return [0, -0.5, 3, Number.NaN][chance(4)];
    return [0, 1, kind.includes('64') ? 2 ** 40 : 7][chance(3)];
  };
  const fields = type.fieldsArray.flatMap((field): readonly (readonly [string, unknown])[] => {
    field.resolve();
    if (chance(3) === 0 || depth > 4) return [];
    if (field.map) return [[field.name, { step: one(field), other: one(field) }]];
    if (field.repeated) return [[field.name, Array.from({ length: chance(3) }, () => one(field))]];
    return [[field.name, one(field)]];
  });
  return Object.fromEntries(fields);
}

function throughBytes(type: MessageType, value: object): Record<string, unknown> {
  return messageToObject(type, type.decode(type.encode(type.fromObject(value)).finish()));
}

describe.each(mappings)('%s', (name, toWire, fromWire) => {
  const type = messageType(name);

  test('what was read once is read the same after another way over the wire', () => {
    for (let seed = 0; seed < 100; seed += 1) {
      const value = fromWire(throughBytes(type, chanceMessage(type, chances(seed))) as never);
      if (value === null) continue;
      expect(fromWire(throughBytes(type, toWire(value as never)) as never), `seed ${seed}`).toEqual(value);
    }
  });
});

const drain = message<Drain>()('Drain');
const overTheWire = (value: Drain) =>
  drain.fromWire(throughBytes(messageType('Drain'), drain.toWire(value)) as never);

test('0, an empty text and null are three things', () => {
  for (const deadlineMs of [0, 1, null]) {
    const value = { reason: '', sinceMs: 0, deadlineMs };
    expect(overTheWire(value)).toEqual(value);
  }
  const absent = drain.toWire({ reason: '', sinceMs: 0, deadlineMs: null });
  expect(absent).toEqual({ reason: '', sinceMs: 0 });
});

test('a member without a field, or that may be null where its field is always there, does not compile', () => {
  // @ts-expect-error `reason` is not optional in the message
  message<{ reason: string | null; sinceMs: number; deadlineMs: number | null }>()('Drain');
  // @ts-expect-error the field may be absent
  message<{ reason: string; sinceMs: number; deadlineMs: number }>()('Drain');
  // @ts-expect-error the message has no `until`
  message<Drain & { until: number }>()('Drain');
  // @ts-expect-error the domain has no `reason`
  message<Omit<Drain, 'reason'>>()('Drain');
  message<Omit<Drain, 'reason'>>()('Drain', without('reason'));
  // @ts-expect-error a word needs its rule
  message<Omit<Drain, 'reason'> & { reason: 'a' | 'b' }>()('Drain');
});
