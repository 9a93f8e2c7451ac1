/**
 * Each parameter of each route with values of its schema, near it, and far from it. Whatever comes, the answer is right or a clear error:
 * never a 500, a hang, or an end of the coordinator.
 */
import type { JsonField, JsonKind } from '@muster/common/wire/jsonMessages';
import { serviceMethods } from '@muster/common/wire/messages';
import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { anyText } from '../../../../test/support/anyText.ts';
import { seededChance } from '../../../../test/support/chance.ts';
import { trialsOf } from '../../../../test/support/trials.ts';
import { startTestCoordinator, type TestCoordinator } from '../coordinatorFixture.ts';
import { startJob, submitJob } from '../rpc/jobFixture.ts';
import { ask, problemIn } from './apiFixture.ts';
import { placesOf } from './parameters.ts';
import { type CallName, type Route, routesOfCalls } from './routes.ts';

/** Requests to each route. */
const runs = trialsOf(300, 4);

let coordinator: TestCoordinator;
beforeAll(async () => {
  coordinator = await startTestCoordinator({ api: {} });
  await startJob(coordinator, await submitJob(coordinator, 'fuzz'));
});
afterAll(() => coordinator.close());

/** What other calls may have made, and what is nothing. */
const names = fc.oneof(
  fc.constantFrom(
    'train',
    'latest',
    'node-1',
    'default',
    'admin',
    'train[0]',
    '__proto__',
    'constructor',
    '..',
    '%',
  ),
  anyText(1, 11),
  fc.string({ minLength: 200, maxLength: 600 }),
);

function valueOf(kind: JsonKind): fc.Arbitrary<unknown> {
  switch (kind.kind) {
    case 'text':
      return names;
    case 'yes or no':
      return fc.boolean();
    case 'number':
      return fc.double();
    case 'whole number':
      return fc.oneof(
        fc.integer({ min: kind.min, max: kind.max }),
        fc.constantFrom(kind.min, kind.max, 0, 1),
      );
    case 'bytes':
      return fc.uint8Array({ maxLength: 100 }).map((bytes) => Buffer.from(bytes).toString('base64'));
    case 'word':
      return fc.constantFrom(...kind.words.keys());
    default:
      return fc.oneof(fc.constant({ name: 'again', command: ['true'] }), fc.object());
  }
}

function memberOf({ kind, isList, isMap }: JsonField): fc.Arbitrary<unknown> {
  const value = valueOf(kind);
  const one = isMap ? fc.dictionary(names, value, { maxKeys: 3 }) : value;
  const fitting = isList ? fc.array(value, { maxLength: 3 }) : one;
  return fc.oneof({ weight: 4, arbitrary: fitting }, { weight: 1, arbitrary: fc.jsonValue() });
}

function membersOf(fields: readonly JsonField[]): fc.Arbitrary<Record<string, unknown>> {
  return fc.record(Object.fromEntries(fields.map((field) => [field.name, memberOf(field)])), {
    requiredKeys: [],
  });
}

interface Request {
  readonly path: Record<string, string>;
  readonly query: Record<string, unknown>;
  readonly body: unknown;
  readonly key: string | undefined;
}

function requestsOf(route: Route, requestType: string): fc.Arbitrary<Request> {
  const places = placesOf(route, requestType);
  const whole = places.whole === null ? fc.constant(undefined) : valueOf(places.whole.kind);
  return fc.record({
    path: fc.record(Object.fromEntries(places.path.map(({ name }) => [name, names]))),
    // With `follow`, a stream would never end.
    query: membersOf(places.query.filter(({ name }) => name !== 'follow')),
    body: places.body === null ? whole : membersOf(places.body),
    key: fc.option(fc.string({ maxLength: 140, unit: 'grapheme-ascii' }), { nil: undefined }),
  });
}

function urlOf({ path, stream }: Route, request: Request): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent((request.path[name] ?? '').toWellFormed()),
  );
  const query = Object.entries(request.query).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((each: unknown) => {
      const text = typeof each === 'string' ? each : (JSON.stringify(each) ?? '');
      return `${name}=${encodeURIComponent(text.toWellFormed())}`;
    }),
  );
  return `${filled}?${[...query, ...(stream === undefined || stream === 'bytes' ? [] : ['follow=false'])].join('&')}`;
}

const rows = serviceMethods('Muster').flatMap(({ name, requestType }) =>
  routesOfCalls[name as CallName].map(
    (route) => [`${route.method} ${route.path}`, route, requestType] as const,
  ),
);

test.each(rows)('%s', async (_, route, requestType) => {
  await fc.assert(
    fc.asyncProperty(requestsOf(route, requestType), async (request) => {
      // What limits failures has tests of its own.
      coordinator.clock.nowMs += 60_000;
      const token = coordinator.storedAdminTokens.at(-1) ?? coordinator.adminToken;
      const answer = await ask(coordinator, `${route.method} ${urlOf(route, request)}`, {
        token,
        ...(request.body === undefined ? {} : { body: JSON.stringify(request.body) }),
        ...(request.key === undefined ? {} : { headers: { 'idempotency-key': request.key } }),
      });
      expect(coordinator.fatal).toEqual([]);
      if (answer.status === 200) return;
      // A store in memory has no backup.
      const expected = route.stream === 'bytes' ? [400, 503] : [400, 401, 403, 404, 409, 429];
      expect([answer.text.slice(0, 300), expected.includes(answer.status)]).toEqual([
        answer.text.slice(0, 300),
        true,
      ]);
      const { code, detail } = problemIn(answer);
      expect([code, detail]).toEqual([expect.any(String), expect.not.stringMatching(/ {4}at |node_modules/)]);
    }),
    { numRuns: runs, seed: seededChance().seed },
  );
});
