/** Where the members of a request are in a call over HTTP, and the request that they make. Pure. */
import { MusterError, type SpecProblemView } from '@muster/common/errors';
import {
  isObject,
  type JsonField,
  jsonFields,
  messageFromJson,
  unknownMember,
  valueOfTexts,
} from '@muster/common/wire/jsonMessages';
import { messageCodec } from '@muster/common/wire/messages';
import type { Route } from './routes.ts';

export interface Places {
  readonly path: readonly JsonField[];
  readonly query: readonly JsonField[];
  /** Members of the body. null: the route has no body, or `whole` is the body. */
  readonly body: readonly JsonField[] | null;
  /** The member that the body as a whole is; null: it is none. */
  readonly whole: JsonField | null;
  /** The member that is the `Idempotency-Key`; null: there is none. */
  readonly key: JsonField | null;
}

/** @param requestType of the call of this route */
export function placesOf(route: Route, requestType: string): Places {
  const fields = [...jsonFields(requestType).values()];
  const inPath = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => {
    const field = fields.find((each) => each.name === name);
    if (field === undefined)
      throw new Error(`${requestType} has no field ${name}, which ${route.path} names`);
    return field;
  });
  const isRead = route.method === 'GET';
  const key = isRead ? null : (fields.find(({ name }) => name === 'requestId') ?? null);
  const whole = fields.find(({ name }) => name === route.body) ?? null;
  const others = fields.filter((field) => !inPath.includes(field) && field !== key && field !== whole);
  const hasBody = !isRead && route.method !== 'DELETE' && whole === null;
  return {
    path: inPath,
    // What is nested is no parameter: streams resume by a header instead.
    query: hasBody ? [] : others.filter(({ kind }) => kind.kind !== 'message'),
    body: hasBody ? others : null,
    whole,
    key,
  };
}

/** What a client has sent. */
export interface SentCall {
  /** By the names in the path. */
  readonly path: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** The text of the body; null: none was sent. */
  readonly body: string | null;
  readonly idempotencyKey: string | null;
}

/**
 * The request as a handler gets it over gRPC.
 * @param newKey what the request is known by where the client has not said
 * @throws {MusterError} `invalid`, with every problem
 */
export function requestOf(places: Places, requestType: string, sent: SentCall, newKey: () => string): object {
  const problems: SpecProblemView[] = [];
  const members: Record<string, unknown> = {};
  for (const field of places.path) members[field.name] = valueOfTexts(field, [sent.path[field.name] ?? '']);
  for (const name of new Set(sent.query.keys())) {
    const field = places.query.find((each) => each.name === name);
    if (field === undefined) {
      const names = places.query.map((each) => each.name);
      problems.push(unknownMember(name, name, names));
    } else members[name] = valueOfTexts(field, sent.query.getAll(name));
  }
  if (places.body === null && places.whole === null && sent.body !== null)
    throw new MusterError('invalid', 'this call takes no body');
  if (places.body !== null && sent.body !== null) {
    const names = places.body.map(({ name }) => name);
    const body = parsedBody(sent.body);
    if (!isObject(body))
      throw new MusterError('invalid', `the body has to be an object of JSON${withNames(names)}`);
    for (const [name, value] of Object.entries(body)) {
      if (names.includes(name)) members[name] = value;
      else problems.push(unknownMember(name, name, names));
    }
  }
  if (places.key !== null) members[places.key.name] = sent.idempotencyKey ?? newKey();
  const message = messageFromJson(requestType, members, problems);
  if (problems.length > 0) throw refusal(problems);
  if (places.whole !== null) message[places.whole.wireName] = sent.body ?? '';
  const codec = messageCodec(requestType);
  return codec.decode(codec.encode(message));
}

function withNames(names: readonly string[]): string {
  return names.length === 0 ? ' without members' : ` with any of ${names.join(', ')}`;
}

function parsedBody(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new MusterError('invalid', `the body is not JSON: ${(error as Error).message}`, { cause: error });
  }
}

/** The first problem in one sentence, and all of them for programs. */
function refusal(problems: readonly SpecProblemView[]): MusterError {
  const [first] = problems;
  const { path = '', message = '', expected = null, suggestion = null } = first ?? {};
  const more = problems.length === 1 ? '' : `, and ${problems.length - 1} more problems`;
  const wanted = expected === null ? '' : `; expected ${expected}`;
  const meant = suggestion === null ? '' : `; did you mean ${suggestion}?`;
  return new MusterError('invalid', `${path === '' ? '' : `${path}: `}${message}${wanted}${meant}${more}`, {
    problems: problems.slice(0, problemsMax),
  });
}

/** Whoever sends 256 KiB of nonsense needs no more of it back. */
const problemsMax = 100;
