/**
 * Messages of proto/ ↔ JSON as docs/json.md has it: what `-o json` prints, and what the HTTP API takes and answers. Names are those of
 * proto3 JSON. A value of an enumeration is its last word in lower case (`running`), an object that travels as text is an object, and
 * bytes are base64.
 */
import type protobuf from 'protobufjs/light.js';
import type { SpecProblemView } from '../errors.ts';
import { closest } from '../spec/suggest.ts';
import {
  adviceFromWire,
  clockFromWire,
  clusterFromWire,
  credentialFromWire,
  eventFromWire,
  jobFromWire,
  lineageFromWire,
  metricsFromWire,
  metricUpdateFromWire,
  nodeFromWire,
  nodeTelemetryFromWire,
  pendingFromWire,
  pipelineFromWire,
  projectFromWire,
  summaryFromWire,
  sweepFromWire,
  trialFromWire,
  triggerFromWire,
  upkeepFromWire,
  userFromWire,
} from './codec.ts';
import { mappedMessage } from './mapping.ts';
import { wireFields } from './messages.ts';
import { messageType } from './messageTypes.ts';

/** A field of a request as clients see it. */
export interface JsonField {
  /** The member that holds it. */
  readonly name: string;
  /** Of the message. */
  readonly wireName: string;
  readonly kind: JsonKind;
  readonly isList: boolean;
  /** An object whose members have any names, and values of this kind. */
  readonly isMap: boolean;
}

export type JsonKind =
  | { readonly kind: 'text' | 'yes or no' | 'number' | 'bytes' | 'object' }
  | { readonly kind: 'whole number'; readonly min: number; readonly max: number }
  | { readonly kind: 'word'; readonly words: ReadonlyMap<string, string> }
  | { readonly kind: 'message'; readonly message: string };

const wholeNumbers: Readonly<Record<string, readonly [min: number, max: number]>> = {
  int32: [-(2 ** 31), 2 ** 31 - 1],
  uint32: [0, 2 ** 32 - 1],
  int64: [Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
  uint64: [0, Number.MAX_SAFE_INTEGER],
};

const known = new Map<string, ReadonlyMap<string, JsonField>>();

/** @param message its name, without its package @returns its fields by the names of their members */
export function jsonFields(message: string): ReadonlyMap<string, JsonField> {
  let fields = known.get(message);
  if (fields === undefined) {
    fields = new Map(
      messageType(message)
        .fieldsArray.map(fieldOf)
        .map((field) => [field.name, field]),
    );
    known.set(message, fields);
  }
  return fields;
}

/** Ends the name of a field that has an object as text. */
const objectEnding = 'Json';

function fieldOf(field: protobuf.Field): JsonField {
  const { name, repeated: isList, map: isMap } = field.resolve();
  if (field.type === 'string' && name.endsWith(objectEnding)) {
    const member = name.slice(0, -objectEnding.length);
    return { name: member, wireName: name, kind: { kind: 'object' }, isList, isMap };
  }
  return { name, wireName: name, kind: kindOf(field), isList, isMap };
}

function kindOf({ type, resolvedType, fullName }: protobuf.Field): JsonKind {
  if (resolvedType !== null && 'values' in resolvedType) {
    // Every value begins with the name of its enumeration: JOB_STATE_RUNNING.
    const prefix = `${resolvedType.name.replaceAll(/(?<=.)([A-Z])/g, '_$1').toUpperCase()}_`;
    const words = Object.entries(resolvedType.values)
      .filter(([, number]) => number !== 0)
      .map(([name]) => [name.slice(prefix.length).toLowerCase(), name] as const);
    return { kind: 'word', words: new Map(words) };
  }
  if (resolvedType !== null) return { kind: 'message', message: resolvedType.name };
  const range = wholeNumbers[type];
  if (range !== undefined) return { kind: 'whole number', min: range[0], max: range[1] };
  if (type === 'string') return { kind: 'text' };
  if (type === 'bool') return { kind: 'yes or no' };
  if (type === 'bytes') return { kind: 'bytes' };
  if (type === 'double' || type === 'float') return { kind: 'number' };
  throw new Error(`no JSON is defined for the type ${type} of ${fullName}`);
}

/**
 * The members of a request as its message. null counts as absent, as it does in answers.
 * @param problems gets whatever is wrong, with its path
 */
export function messageFromJson(
  message: string,
  value: unknown,
  problems: SpecProblemView[],
  path = '',
): Record<string, unknown> {
  if (!isObject(value)) {
    problems.push(problem(path, 'an object', value));
    return {};
  }
  const fields = jsonFields(message);
  const result: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(value)) {
    const at = path === '' ? name : `${path}.${name}`;
    const field = fields.get(name);
    if (field === undefined) problems.push(unknownMember(at, name, [...fields.keys()]));
    else if (member !== null) result[field.wireName] = listOrOne(field, member, problems, at);
  }
  return result;
}

/** @param texts of a parameter in a URL, one for each time that it is there */
export function valueOfTexts(
  { kind, isList }: Pick<JsonField, 'kind' | 'isList'>,
  texts: readonly string[],
): unknown {
  const values = texts.map((text) => {
    if (kind.kind === 'yes or no') return text === 'true' ? true : text === 'false' ? false : text;
    const isNumber = kind.kind === 'whole number' || kind.kind === 'number';
    return isNumber && /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(text) ? Number(text) : text;
  });
  return isList || values.length > 1 ? values : values[0];
}

function listOrOne(field: JsonField, value: unknown, problems: SpecProblemView[], path: string): unknown {
  if (field.isMap) return mapOf(field.kind, value, problems, path);
  if (!field.isList) return one(field.kind, value, problems, path);
  if (!Array.isArray(value)) {
    problems.push(problem(path, 'a list', value));
    return [];
  }
  return value.map((each: unknown, index) => one(field.kind, each, problems, `${path}[${index}]`));
}

function mapOf(kind: JsonKind, value: unknown, problems: SpecProblemView[], path: string): unknown {
  if (!isObject(value)) {
    problems.push(problem(path, 'an object', value));
    return {};
  }
  const members = Object.entries(value).map(
    ([name, each]) => [name, one(kind, each, problems, `${path}.${name}`)] as const,
  );
  return Object.fromEntries(members);
}

function one(kind: JsonKind, value: unknown, problems: SpecProblemView[], path: string): unknown {
  if (kind.kind === 'message') return messageFromJson(kind.message, value, problems, path);
  const read = readScalar(kind, value);
  if (read === undefined) {
    const words = kind.kind === 'word' ? [...kind.words.keys()] : [];
    const suggestion = typeof value === 'string' ? closest(value, words) : null;
    problems.push({ ...problem(path, expectedOf(kind), value), suggestion });
  }
  return read;
}

/** @returns undefined for what is no such value */
function readScalar(kind: JsonKind, value: unknown): unknown {
  switch (kind.kind) {
    case 'text':
      return typeof value === 'string' ? value : undefined;
    case 'yes or no':
      return typeof value === 'boolean' ? value : undefined;
    case 'number':
      return typeof value === 'number' ? value : undefined;
    case 'whole number':
      return Number.isInteger(value) && Number(value) >= kind.min && Number(value) <= kind.max
        ? value
        : undefined;
    case 'bytes':
      return typeof value === 'string' && isBase64(value) ? Buffer.from(value, 'base64') : undefined;
    case 'word':
      return typeof value === 'string' ? kind.words.get(value) : undefined;
    default:
      return isObject(value) ? JSON.stringify(value) : undefined;
  }
}

/** What a value of this kind is, for people. */
export function expectedOf(kind: JsonKind): string {
  switch (kind.kind) {
    case 'text':
      return 'a text';
    case 'yes or no':
      return 'true or false';
    case 'number':
      return 'a number';
    case 'whole number':
      return kind.max === Number.MAX_SAFE_INTEGER
        ? `a whole number${kind.min === 0 ? ' of at least 0' : ''}`
        : `a whole number from ${kind.min} to ${kind.max}`;
    case 'bytes':
      return 'bytes as base64';
    case 'word':
      return `one of ${[...kind.words.keys()].join(', ')}`;
    default:
      return 'an object';
  }
}

const shownLengthMax = 60;

function problem(path: string, expected: string, got: unknown): SpecProblemView {
  const text = got === undefined ? 'nothing' : (JSON.stringify(got) ?? typeof got);
  const shown = text.length > shownLengthMax ? `${text.slice(0, shownLengthMax)}…` : text;
  return { path, message: `got ${shown.toWellFormed()}`, expected, suggestion: null };
}

/** @param names that there are */
export function unknownMember(path: string, name: string, names: readonly string[]): SpecProblemView {
  const shown = name.length > shownLengthMax ? `${name.slice(0, shownLengthMax)}…` : name;
  return {
    path: path.slice(0, 4 * shownLengthMax).toWellFormed(),
    message: `there is no "${shown.toWellFormed()}" here`,
    expected: names.length === 0 ? 'nothing' : names.join(', '),
    suggestion: closest(name.slice(0, 4 * shownLengthMax), names),
  };
}

function isBase64(text: string): boolean {
  return text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text);
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

// ---- Answers.

type FromWire = (wire: never) => unknown;

/** The messages that have rules of their own in `codec.ts`, wherever they are in an answer. */
const domainOf: Readonly<Record<string, FromWire>> = {
  Advice: adviceFromWire,
  Cluster: clusterFromWire,
  Credential: credentialFromWire,
  Event: eventFromWire,
  Job: jobFromWire,
  MetricUpdate: metricUpdateFromWire,
  Lineage: lineageFromWire,
  Node: nodeFromWire,
  NodeTelemetry: nodeTelemetryFromWire,
  PendingReason: pendingFromWire,
  PipelineRun: pipelineFromWire,
  Project: projectFromWire,
  QueryMetricsResponse: metricsFromWire,
  Sweep: sweepFromWire,
  TrainingSummary: summaryFromWire,
  Trial: trialFromWire,
  Trigger: triggerFromWire,
  CoordinatorClock: clockFromWire,
  Upkeep: upkeepFromWire,
  User: userFromWire,
};

const answers = new Map<string, FromWire>();

/** @param wire a message as a handler returns it, or as it was decoded @returns what `-o json` prints of it */
export function jsonOfMessage(message: string, wire: object): unknown {
  return fromWireOf(message)(wire as never);
}

function fromWireOf(message: string): FromWire {
  let found = answers.get(message);
  if (found === undefined) {
    found = domainOf[message] ?? mappedMessage(message, rulesOf(message));
    answers.set(message, found);
  }
  return found;
}

function rulesOf(message: string) {
  const nested = wireFields(message).filter((field) => field.message !== null);
  return Object.fromEntries(
    nested.map(({ name, message: inner }) => [name, { fromWire: fromWireOf(inner ?? '') }]),
  );
}
