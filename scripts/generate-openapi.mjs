// Makes the OpenAPI document of the HTTP API from the table of routes, proto/ and the schema of the job file: docs/openapi.json for
// people and tools, and the same in one line beside the server that answers with it. `--check` compares instead of writing.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import protobuf from 'protobufjs';
import { answerJsonSchema } from '../packages/advice/src/file/answerSchemas.ts';
import { contextJsonSchema } from '../packages/advice/src/file/readContext.ts';
import { jobSpecJsonSchema } from '../packages/common/src/spec/validate.ts';
import { jsonFields } from '../packages/common/src/wire/jsonMessages.ts';
import { serviceMethods } from '../packages/common/src/wire/messages.ts';
import { placesOf } from '../packages/coordinator/src/api/parameters.ts';
import { apiPrefix, routesOfCalls, webhookPath } from '../packages/coordinator/src/api/routes.ts';
import { isForAnyone } from '../packages/coordinator/src/auth/policy.ts';

/** @typedef {Record<string, unknown>} Schema */
/** @typedef {import('../packages/common/src/wire/jsonMessages.ts').JsonField} JsonField */

const root = fileURLToPath(new URL('..', import.meta.url));
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

const proto = new protobuf.Root();
proto.resolvePath = (_origin, target) => join(root, 'proto', target);
proto.loadSync(['muster/v1/muster.proto'], { alternateCommentMode: true }).resolveAll();
const service = proto.lookupService('muster.v1.Muster');

/** Text in messages that is an object in JSON. */
const objects = {
  'Job.spec': '#/components/schemas/JobFile',
  'Event.cloudEvent': null,
  'Sweep.spec': null,
  'PipelineRun.spec': null,
  'PipelineRun.params': null,
  'Trigger.spec': null,
  'Trigger.params': null,
  'LineageStep.params': null,
  'Trial.params': null,
};

/** @param {string | null} comment */
function sentence(comment) {
  return (comment ?? '').replaceAll(/\s+/g, ' ').trim();
}

/** @param {string} comment @returns {Schema} */
function described(comment) {
  const text = sentence(comment);
  return text === '' ? {} : { description: text };
}

/** Objects of requests that are no job file. @type {Readonly<Record<string, string>>} */
const requestObjects = { 'AdviseRequest.context': '#/components/schemas/TrainingContext' };

/** The messages of answers and bodies, each once. @type {Set<string>} */
const shown = new Set();

/** @param {string} message */
function reference(message) {
  shown.add(message);
  return { $ref: `#/components/schemas/${message}` };
}

/** @param {JsonField['kind']} kind @returns {Schema} */
function schemaOfKind(kind) {
  switch (kind.kind) {
    case 'text':
      return { type: 'string' };
    case 'yes or no':
      return { type: 'boolean' };
    case 'number':
      return { type: 'number' };
    case 'whole number':
      return { type: 'integer', minimum: kind.min, maximum: kind.max };
    case 'bytes':
      return { type: 'string', contentEncoding: 'base64' };
    case 'word':
      return { type: 'string', enum: [...kind.words.keys()] };
    case 'message':
      return reference(kind.message);
    default:
      return { $ref: '#/components/schemas/JobFile' };
  }
}

/** @param {JsonField} field @returns {Schema} */
function schemaOfField({ kind, isList, isMap }) {
  const schema = schemaOfKind(kind);
  if (isMap) return { type: 'object', additionalProperties: schema };
  return isList ? { type: 'array', items: schema } : schema;
}

/** @param {string} message @param {JsonField} field @returns {Schema | null} */
function objectOfRequest(message, { name }) {
  const object = requestObjects[`${message}.${name}`];
  return object === undefined ? null : { $ref: object };
}

/** @param {string} message @param {JsonField} field */
function commentOf(message, field) {
  return proto.lookupType(`muster.v1.${message}`).fields[field.wireName]?.comment ?? '';
}

/** What an answer has. @param {string} message @returns {Schema} */
function schemaOfMessage(message) {
  const type = proto.lookupType(`muster.v1.${message}`);
  const properties = [...jsonFields(message).values()].map((field) => {
    const wire = type.fields[field.wireName];
    const object = objects[/** @type {keyof typeof objects} */ (`${message}.${field.name}`)];
    const isMap = wire instanceof protobuf.MapField;
    const plain =
      object === undefined
        ? isMap
          ? { type: 'object', additionalProperties: schemaOfKind(field.kind) }
          : schemaOfField(field)
        : object === null
          ? { type: 'object' }
          : { $ref: object };
    const mayLack =
      !field.isList &&
      !isMap &&
      (wire?.options?.['proto3_optional'] === true || field.kind.kind === 'message');
    const schema = mayLack ? { anyOf: [plain, { type: 'null' }] } : plain;
    return [field.name, { ...schema, ...described(wire?.comment ?? '') }];
  });
  return { type: 'object', ...described(type.comment ?? ''), properties: Object.fromEntries(properties) };
}

/** @param {string} place @param {string} message @param {JsonField} field */
function parameter(place, message, field) {
  const isInPath = place === 'path';
  return {
    name: field.name,
    in: place,
    ...(isInPath ? { required: true } : {}),
    ...described(commentOf(message, field)),
    schema: isInPath ? schemaOfKind(field.kind) : schemaOfField(field),
  };
}

const json = 'application/json';
const problems = { $ref: '#/components/responses/Problem' };
const streams = {
  events: 'Server-sent events: CloudEvents, one each; the id of an event is its sequence number.',
  logs: 'Server-sent events: one `{attempt, nodeRank, line}` each; the id of an event has the position of each rank after it.',
  metrics:
    'Server-sent events: one `{unit, series}` each, with the points that are new; the id of an event is its position.',
  bytes: 'The content of the backup.',
};

/**
 * @param {import('../packages/common/src/wire/messages.ts').Method} method
 * @param {import('../packages/coordinator/src/api/routes.ts').Route} route
 * @param {number} index
 */
function operation({ name, path, requestType, responseType }, route, index) {
  const places = placesOf(route, requestType);
  const id = `${name.charAt(0).toLowerCase()}${name.slice(1)}${index === 0 ? '' : index + 1}`;
  const body =
    places.whole === null
      ? {
          type: 'object',
          properties: bodyProperties(requestType, places.body ?? []),
          additionalProperties: false,
        }
      : (objectOfRequest(requestType, places.whole) ?? schemaOfField(places.whole));
  const hasBody = places.whole !== null || (places.body ?? []).length > 0;
  const header = (/** @type {string} */ headerName, /** @type {string} */ description) => ({
    name: headerName,
    in: 'header',
    description,
    schema: { type: 'string' },
  });
  const { stream } = route;
  return {
    operationId: id,
    tags: [route.path.split('/')[1]],
    ...described(service.methods[name]?.comment ?? ''),
    ...(isForAnyone(path) ? { security: [] } : {}),
    parameters: [
      ...places.path.map((field) => parameter('path', requestType, field)),
      ...places.query.map((field) => parameter('query', requestType, field)),
      ...(places.key === null
        ? []
        : [
            header(
              'Idempotency-Key',
              'Chosen by the client, unique per intent: repeating the call with it is safe. 1 to 128 characters.',
            ),
          ]),
      ...(stream !== undefined && stream !== 'bytes'
        ? [
            header(
              'Last-Event-ID',
              'The id of the last event that was received: the stream resumes after it.',
            ),
          ]
        : []),
    ],
    ...(hasBody
      ? { requestBody: { required: places.whole !== null, content: { [json]: { schema: body } } } }
      : {}),
    responses: {
      200:
        stream === undefined
          ? { description: 'The answer.', content: { [json]: { schema: reference(responseType) } } }
          : {
              description: streams[stream],
              content: {
                [stream === 'bytes' ? 'application/octet-stream' : 'text/event-stream']: {
                  schema: { type: 'string', ...(stream === 'bytes' ? { format: 'binary' } : {}) },
                },
              },
            },
      default: problems,
    },
  };
}

/** @param {string} message @param {readonly JsonField[]} fields */
function bodyProperties(message, fields) {
  return Object.fromEntries(
    fields.map((field) => [field.name, { ...schemaOfField(field), ...described(commentOf(message, field)) }]),
  );
}

/** A delivery to a trigger, which is no call of the service: its sender has no token, and signs it. */
function delivery() {
  const header = (/** @type {string} */ name, /** @type {string} */ description) => ({
    name,
    in: 'header',
    required: true,
    description,
    schema: { type: 'string' },
  });
  const nullable = { type: ['string', 'null'] };
  const answer = {
    type: 'object',
    properties: {
      trigger: { type: 'string' },
      run: { ...nullable, description: 'The run that it has started. null: none, or none yet.' },
      repeated: { type: 'boolean', description: 'It was carried out before.' },
    },
  };
  return {
    operationId: 'deliverWebhook',
    tags: ['triggers'],
    description:
      'Fires a trigger by webhook, as standardwebhooks.com defines it. Repeating it with the same id is safe.',
    security: [],
    parameters: [
      { name: 'name', in: 'path', required: true, schema: { type: 'string' } },
      header('webhook-id', 'Of the delivery. 1 to 256 characters.'),
      header('webhook-timestamp', 'Seconds since 1970, within 5 minutes of the clock of the coordinator.'),
      header('webhook-signature', '`v1,` and the HMAC-SHA256 of `ID.TIMESTAMP.BODY` in base64.'),
    ],
    requestBody: { content: { [json]: { schema: {} } } },
    responses: {
      200: { description: 'The answer.', content: { [json]: { schema: answer } } },
      default: problems,
    },
  };
}

/** @returns {Record<string, Record<string, unknown>>} */
function allPaths() {
  /** @type {Record<string, Record<string, unknown>>} */
  const paths = {};
  for (const method of serviceMethods('Muster')) {
    const routes = routesOfCalls[/** @type {keyof typeof routesOfCalls} */ (method.name)];
    for (const [index, route] of routes.entries()) {
      paths[route.path] ??= {};
      Object.assign(paths[route.path] ?? {}, {
        [route.method.toLowerCase()]: operation(method, route, index),
      });
    }
  }
  paths[webhookPath] = { post: delivery() };
  return paths;
}

/** The schemas that the paths refer to, and those that these refer to. */
function schemas() {
  /** @type {Record<string, Schema>} */
  const found = {};
  for (const message of shown) found[message] = schemaOfMessage(message);
  return found;
}

/** @param {Schema} schema */
function withoutMarks({ $schema: _schema, $id: _id, ...schema }) {
  return schema;
}

const jobFile = withoutMarks(jobSpecJsonSchema());
const paths = allPaths();
const document = {
  openapi: '3.1.0',
  info: {
    title: 'Muster',
    version,
    license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    description:
      'Every call of the service muster.v1.Muster as JSON. Members have the names that `-o json` prints. What is absent is null. ' +
      'New members may be added: ignore those that you do not know.',
  },
  servers: [{ url: apiPrefix }],
  security: [{ token: [] }],
  paths,
  components: {
    securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    responses: {
      Problem: {
        description: 'The call is refused, or it failed.',
        content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
      },
    },
    schemas: {
      ...schemas(),
      // The answer is what the message carries as text.
      Advice: withoutMarks(answerJsonSchema()),
      TrainingContext: withoutMarks(contextJsonSchema()),
      JobFile: jobFile,
      Problem: {
        type: 'object',
        required: ['type', 'title', 'status', 'detail', 'code', 'problems'],
        properties: {
          type: { type: 'string', format: 'uri' },
          title: { type: 'string' },
          status: { type: 'integer' },
          detail: { type: 'string', description: 'What is wrong, for people.' },
          code: { type: 'string', description: 'The kind of error, as `-o json` has it.' },
          problems: {
            type: 'array',
            description: 'Of a refused job spec, and of refused parameters.',
            items: {
              type: 'object',
              required: ['path', 'message', 'expected', 'suggestion'],
              properties: {
                path: { type: 'string' },
                message: { type: 'string' },
                expected: { type: ['string', 'null'] },
                suggestion: { type: ['string', 'null'] },
              },
            },
          },
        },
      },
    },
  },
};

const files = [
  ['docs/openapi.json', `${JSON.stringify(document, null, 2)}\n`],
  ['packages/coordinator/src/api/openapi.json', `${JSON.stringify(document)}\n`],
];
for (const [path = '', text = ''] of files) {
  if (!process.argv.includes('--check')) writeFileSync(join(root, path), text);
  else if (readFileSync(join(root, path), 'utf8') !== text) {
    process.stderr.write(`${path} is not what proto/ and the routes say: run \`npm run generate\`.\n`);
    process.exitCode = 1;
  }
}
