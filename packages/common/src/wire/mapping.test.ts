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
import { type MessageType, messageToObject, messageType } from './messageTypes.ts';
import { chanceMessage, chances } from './wireFixture.ts';

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
