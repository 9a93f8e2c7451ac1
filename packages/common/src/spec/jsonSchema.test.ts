import { expect, test } from 'vitest';
import { retryableCauses } from './causes.ts';
import { isMapping } from './path.ts';
import { knownMapping, specKeys } from './suggest.ts';
import { jobSpecJsonSchema, validateJobSpec } from './validate.ts';

type Schema = Readonly<Record<string, unknown>>;

function propertiesOf(schema: Schema): Readonly<Record<string, Schema>> {
  return (schema['properties'] ?? {}) as Readonly<Record<string, Schema>>;
}

/** What a schema stands for: itself, or any of several. */
function formsOf(schema: Schema): readonly Schema[] {
  const { anyOf, items } = schema as { anyOf?: readonly Schema[]; items?: Schema };
  // Of a list of mappings: what each of them is.
  return anyOf ?? (items !== undefined && 'properties' in items ? [items] : [schema]);
}

/** Every mapping with fixed keys, by its path. */
function mappings(field: Schema, path: string): [string, Schema][] {
  return formsOf(field).flatMap((form) => mappingsOf(form, path));
}

function mappingsOf(schema: Schema, path: string): [string, Schema][] {
  const inner = Object.entries(propertiesOf(schema)).flatMap(([key, property]) =>
    mappings(property, path === '' ? key : `${path}.${key}`),
  );
  return 'properties' in schema ? [[path, schema], ...inner] : inner;
}

const schema = jobSpecJsonSchema();

test('it says what it is', () => {
  expect(schema).toMatchObject({
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: 'urn:muster:job-spec:v1',
    title: 'Muster job',
    type: 'object',
  });
});

test('every mapping has the known keys and no others, each described', () => {
  const found = mappings(schema, '');
  for (const [path, { properties }] of found)
    expect([path, specKeys.get(knownMapping(path.split('.')))]).toEqual([
      path,
      Object.keys(properties as Schema),
    ]);
  expect(found.map(([path]) => path)).toEqual(expect.arrayContaining([...specKeys.keys()]));
  expect(found.filter(([, mapping]) => mapping['additionalProperties'] !== false)).toEqual([]);
  const undescribed = found.flatMap(([path, mapping]) =>
    Object.entries(propertiesOf(mapping))
      .filter(([, { description }]) => typeof description !== 'string' || !/^.+\.$/.test(description))
      .map(([key]) => `${path}.${key}`),
  );
  expect(undescribed).toEqual([]);
});

test('only env, params and labels are free maps, with rules for their names', () => {
  const free = Object.entries(propertiesOf(schema)).filter(([, property]) =>
    isMapping(property['additionalProperties']),
  );
  expect(free.map(([key]) => key)).toEqual(['env', 'params', 'labels']);
  for (const [, property] of free)
    expect(property['propertyNames']).toMatchObject({ pattern: expect.any(String) });
});

test('defaults shown to editors are the ones a job gets, and are valid themselves', () => {
  const defaultsOf = (mapping: Schema): Schema =>
    Object.fromEntries(
      Object.entries(propertiesOf(mapping)).flatMap(([key, property]) => {
        if ('default' in property) return [[key, property['default']]];
        const inner = 'properties' in property ? defaultsOf(property) : {};
        return Object.keys(inner).length > 0 ? [[key, inner]] : [];
      }),
    );
  const defaults = defaultsOf(schema);
  // Alone it would keep nothing from being deleted, which is refused.
  // And defaults alone do not say what is evaluated, nor where a store is.
  const { checkpoint: _best, evaluate: _none, artifacts: _nowhere, ...rest } = defaults;
  const written = { command: ['a'], ...rest };
  expect(Object.keys(defaults)).toEqual([
    'project',
    'resources',
    'priority',
    'preemptible',
    'stop_grace',
    'stop_signal',
    'on_divergence',
    'on_hang',
    'launcher',
    'prepare_timeout',
    'rendezvous_timeout',
    'on_lease_expiry',
    'node_loss',
    'retry',
    'checkpoint',
    'evaluate',
    'artifacts',
  ]);
  expect(validateJobSpec(written)).toEqual(validateJobSpec({ command: ['a'] }));
});

test('editors can complete causes and other words', () => {
  const fields = propertiesOf(schema);
  expect(fields['launcher']).toMatchObject({ enum: ['torchrun', 'env', 'mpi-hostfile'] });
  expect(fields['on_lease_expiry']).toMatchObject({ enum: ['freeze', 'kill'] });
  expect(fields['node_loss']).toMatchObject({ enum: ['requeue', 'hold'] });
  expect(propertiesOf(fields['resources'] ?? {})['topology']).toMatchObject({
    enum: ['preferred', 'required'],
  });
  expect(propertiesOf(propertiesOf(schema)['retry'] as Schema)['on']).toMatchObject({
    items: { enum: [...retryableCauses] },
  });
});

test('patterns are regular expressions everywhere', () => {
  const patterns = [...JSON.stringify(schema).matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g)].map(
    ([, json = '']) => JSON.parse(json) as string,
  );
  expect(patterns.length).toBeGreaterThan(10);
  // JSON Schema asks for the `u` flag, under which a needless escape is an error.
  for (const pattern of patterns) expect(() => new RegExp(pattern, 'u')).not.toThrow();
});
