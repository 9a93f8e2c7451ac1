import { exampleOf, kindsOfEvents, schemaOfEvents } from '@muster/common/eventSchema';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import { problemOfCloudEvent, problemOfEvent } from './eventSchemaFixture.ts';

const envelope = {
  specversion: '1.0',
  id: 'c0ffee-1',
  source: '/muster/c0ffee',
  time: '2026-01-02T03:04:05.000Z',
  datacontenttype: 'application/json',
  sequence: '1',
  subjectsequence: '1',
  by: 'admin',
};

test('the schema is one of JSON Schema 2020-12', () => {
  expect(new Ajv2020().validateSchema(schemaOfEvents())).toBe(true);
});

test('the example of each kind is valid', () => {
  for (const kind of kindsOfEvents)
    expect([kind, problemOfCloudEvent({ ...envelope, ...exampleOf(kind) })]).toEqual([kind, null]);
});

test('a member that is missing, of another type, or not in the table is a problem', () => {
  const data = { name: 'train', byMs: 1, extraRuntimeMs: 2 };
  const problem = (changed: object) => problemOfEvent({ kind: 'job.extended', data: changed });
  expect(problem(data)).toBeNull();
  expect(problem({ name: 'train', byMs: 1 })).toMatch(/^job\.extended: .*required property 'extraRuntimeMs'/);
  expect(problem({ ...data, byMs: '1' })).toMatch(/\/byMs must be integer/);
  expect(problem({ ...data, byS: 1 })).toBe(
    'job.extended has byS, which its row in the table of kinds does not have',
  );
  expect(problemOfEvent({ kind: 'job.lost' as 'job.failed', data: {} })).toBe(
    'job.lost is not in the table of kinds',
  );
});

test('an event is an envelope with the subject and the data of its type; unknown types are later ones', () => {
  const event = { ...envelope, ...exampleOf('node.online') };
  expect(problemOfCloudEvent(event)).toBeNull();
  expect(problemOfCloudEvent({ ...event, data: {} })).toMatch(/bootId/);
  expect(problemOfCloudEvent({ ...event, sequence: 1 })).toMatch(/sequence must be string/);
  expect(problemOfCloudEvent({ ...envelope, ...exampleOf('job.failed'), subject: 'node-1' })).toMatch(
    /subject must match pattern/,
  );
  expect(problemOfCloudEvent({ ...event, type: 'muster.node.painted', data: {} })).toBeNull();
});
