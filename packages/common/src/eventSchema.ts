/** The JSON Schema of events, and an example of each kind, from the table of kinds. Pure. */
import { type EventKind, eventKinds } from './eventKinds.ts';
import { type EventShape, type Members, objectOf, textShape } from './jsonShapes.ts';

type Subject = (typeof eventKinds)[EventKind]['subject'];

const digits = { type: 'string', pattern: '^[0-9]+$' };

const subjects: Readonly<Record<Subject, object>> = {
  job: { type: 'string', pattern: '^job_' },
  output: { type: 'string', pattern: '^(job_|cluster$)' },
  node: {},
  cluster: { const: 'cluster' },
};

const exampleSubjects: Readonly<Record<Subject, string>> = {
  job: 'job_4n2k8qwz1y7m',
  output: 'job_4n2k8qwz1y7m',
  node: 'gpu-1',
  cluster: 'cluster',
};

export const kindsOfEvents = Object.keys(eventKinds) as readonly EventKind[];

/** Of the data of a kind, the name of its job included. */
export function dataMembersOf(kind: EventKind): Members {
  const { subject, data } = eventKinds[kind];
  return subject === 'job' ? { name: textShape('train'), ...data } : data;
}

/** An event as it may be, without what all events have besides. */
export function exampleOf(kind: EventKind): {
  readonly type: string;
  readonly subject: string;
  readonly data: unknown;
} {
  const { subject } = eventKinds[kind];
  return {
    type: `muster.${kind}`,
    subject: exampleSubjects[subject],
    data: objectOf(dataMembersOf(kind)).example,
  };
}

/** Of a CloudEvent of Muster. Types that it does not know are valid, because later versions have more of them. */
export function schemaOfEvents(): object {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'An event of Muster',
    description: 'Made by scripts/generate-event-docs.mjs.',
    type: 'object',
    required: ['specversion', 'id', 'source', 'type', 'subject', 'time', 'datacontenttype', 'data'],
    properties: {
      specversion: { const: '1.0' },
      id: { type: 'string' },
      source: { type: 'string', pattern: '^/muster/' },
      type: { type: 'string', pattern: '^muster[.]' },
      subject: { type: 'string' },
      time: { type: 'string', pattern: '^[0-9-]{10}T[0-9:.]+Z$' },
      datacontenttype: { const: 'application/json' },
      sequence: digits,
      subjectsequence: digits,
      by: { type: 'string' },
      peer: { type: 'string' },
      traceid: { type: 'string', pattern: '^[0-9a-f]{32}$' },
      data: { type: 'object' },
    },
    // For each kind: an event of another type, or one with this subject and data.
    allOf: kindsOfEvents.map((kind) => ({
      anyOf: [
        { properties: { type: { not: { const: `muster.${kind}` } } } },
        { properties: { subject: subjects[eventKinds[kind].subject], data: { $ref: `#/$defs/${kind}` } } },
      ],
    })),
    $defs: Object.fromEntries(kindsOfEvents.map((kind) => [kind, definitionOf(kind)])),
  };
}

function definitionOf(kind: EventKind): object {
  return { description: eventKinds[kind].when, ...schemaOf(objectOf(dataMembersOf(kind))) };
}

function schemaOf({
  type,
  enum: values,
  properties,
  required,
  items,
  additionalProperties,
}: EventShape): object {
  return {
    type,
    ...(values === undefined ? {} : { enum: values }),
    ...(properties === undefined
      ? {}
      : {
          properties: Object.fromEntries(
            Object.entries(properties).map(([name, each]) => [name, schemaOf(each)]),
          ),
        }),
    ...(required === undefined ? {} : { required }),
    ...(items === undefined ? {} : { items: schemaOf(items) }),
    ...(additionalProperties === undefined ? {} : { additionalProperties: schemaOf(additionalProperties) }),
  };
}
