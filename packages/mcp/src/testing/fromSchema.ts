/** Values by a JSON Schema, and values that break it: what a model may send. */
import * as fc from 'fast-check';

export type JsonSchema = Readonly<Record<string, unknown>>;

/** Of any type, with the texts that break careless code. */
const anything: fc.Arbitrary<unknown> = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom(
    '',
    '__proto__',
    '../../etc/passwd',
    'job_000000000001',
    'latest',
    '*'.repeat(200),
    `${'a'.repeat(5_000)}!`,
    '\0',
    '💥',
    "'; drop table jobs; --",
    '-30m',
    '-999999999999999d',
    Number.MAX_SAFE_INTEGER,
    -1,
    1.5,
    1e308,
  ),
);

/** Mostly by the schema; what is outside of it comes now and then, at any depth. */
export function byOrAgainst(schema: JsonSchema): fc.Arbitrary<unknown> {
  return fc.oneof({ weight: 9, arbitrary: by(schema) }, { weight: 1, arbitrary: anything });
}

/** Arguments of a tool: some of its parameters, and now and then one that it does not have. */
export function argumentsBy(schema: JsonSchema): fc.Arbitrary<Readonly<Record<string, unknown>>> {
  const properties = (schema['properties'] ?? {}) as Readonly<Record<string, JsonSchema>>;
  const known = fc.record(
    Object.fromEntries(Object.entries(properties).map(([name, each]) => [name, byOrAgainst(each)])),
    { requiredKeys: ((schema['required'] ?? []) as string[]).slice(0, 1) },
  );
  const unknown = fc.dictionary(fc.string({ maxLength: 20 }), anything, { maxKeys: 2 });
  return fc.oneof(
    { weight: 6, arbitrary: known },
    { weight: 1, arbitrary: fc.tuple(known, unknown).map(([a, b]) => ({ ...a, ...b })) },
  );
}

function by(schema: JsonSchema): fc.Arbitrary<unknown> {
  const choices = (schema['anyOf'] ?? schema['oneOf']) as readonly JsonSchema[] | undefined;
  if (choices !== undefined) return fc.oneof(...choices.map(byOrAgainst));
  const words = schema['enum'] as readonly unknown[] | undefined;
  if (words !== undefined) return fc.constantFrom(...words);
  switch (schema['type']) {
    case 'string':
      return textBy(schema);
    case 'integer':
    case 'number':
      return numberBy(schema);
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    case 'array':
      return fc.array(byOrAgainst((schema['items'] ?? {}) as JsonSchema), { maxLength: 5 });
    case 'object':
      return schema['properties'] === undefined
        ? fc.dictionary(
            fc.string({ maxLength: 20 }),
            byOrAgainst((schema['additionalProperties'] ?? {}) as JsonSchema),
            { maxKeys: 4 },
          )
        : argumentsBy(schema);
    default:
      return anything;
  }
}

function textBy(schema: JsonSchema): fc.Arbitrary<string> {
  const maxLength = Math.min(Number(schema['maxLength'] ?? 40), 200);
  const minLength = Math.min(Number(schema['minLength'] ?? 0), maxLength);
  return fc.oneof(
    fc.string({ minLength, maxLength, unit: 'grapheme' }),
    fc.constantFrom('train', 'job_000000000001', 'node-1', 'latest', '-30m', 'gpu_utilization', '7B', '1'),
  );
}

function numberBy(schema: JsonSchema): fc.Arbitrary<number> {
  const min = Math.max(Number(schema['minimum'] ?? -1e6), Number.MIN_SAFE_INTEGER);
  const max = Math.min(Number(schema['maximum'] ?? 1e6), Number.MAX_SAFE_INTEGER);
  const edges = fc.constantFrom(min, max);
  if (schema['type'] === 'integer') {
    const low = Math.ceil(min);
    return fc.oneof(
      edges,
      fc.integer({ min: low, max: Math.floor(max) }),
      fc.integer({ min: low, max: Math.min(low + 8, max) }),
    );
  }
  return fc.oneof(edges, fc.double({ min, max, noNaN: true }));
}
