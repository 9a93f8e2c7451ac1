import type { ArtifactView, LineageStepView, LineageView } from '@muster/common/pipelines';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { anyText } from '../../../../test/support/anyText.ts';
import { problemOfMarkup } from '../testing/markup.ts';
import { lineageDrawing } from './lineageDrawing.ts';
import { lineageDrawings } from './lineageDrawings.ts';
import { drawnLineage } from './lineageGraph.ts';

function anArtifact(name: string): ArtifactView {
  return { name, type: 'file', path: `/${name}`, bytes: 1, digest: `sha256:${name}` };
}

function aStep(
  step: string,
  inputs: readonly string[],
  outputs: readonly string[],
  change: Partial<LineageStepView> = {},
): LineageStepView {
  return {
    run: 'pln_1',
    pipeline: 'vision',
    step,
    index: 0,
    item: null,
    state: 'succeeded',
    jobId: `job_${step}`,
    nodes: ['node-1'],
    params: { lr: 0.1 },
    code: null,
    inputs: inputs.map(anArtifact),
    outputs: outputs.map(anArtifact),
    startedAtMs: 0,
    ...change,
  };
}

function aLineage(change: Partial<LineageView>): LineageView {
  return { subject: '/model', kind: 'artifact', madeBy: [], usedBy: [], ...change };
}

const small = aLineage({
  madeBy: [
    aStep('prepare', [], ['data', 'words']),
    aStep('count', ['words'], ['counts']),
    aStep('train', ['data', 'counts'], ['model']),
  ],
  usedBy: [
    aStep('prepare', [], ['data'], { run: 'pln_2', state: 'cached' }),
    aStep('report', ['model', 'data'], [], { state: 'failed' }),
  ],
});

test('arrows lead from the maker of an artifact to those that have used it', () => {
  const { nodes, edges } = drawnLineage(small);
  expect(nodes.map(({ steps: [{ run, step }], layer, isSubject }) => [run, step, layer, isSubject])).toEqual([
    ['pln_1', 'prepare', 0, false],
    ['pln_1', 'count', 1, false],
    ['pln_1', 'train', 2, true],
    ['pln_2', 'prepare', 0, false],
    ['pln_1', 'report', 3, false],
  ]);
  expect(edges.map(({ from, to, names }) => `${from}>${to} ${names.join()}`)).toEqual([
    '0>1 words',
    '0>2 data',
    '1>2 counts',
    '2>4 model',
    '0>4 data',
  ]);
  const dot = lineageDrawing(small, 'dot');
  expect(dot).toContain('  n2 [label="train\\npln_1\\nsucceeded", ');
  expect(dot).toContain('  n1 -> n2 [label="counts"];\n');
  const svg = lineageDrawing(small, 'svg');
  expect(problemOfMarkup(svg)).toBeNull();
  expect(svg.match(/<rect [^>]*rx="5"/g)).toHaveLength(5);
  expect(svg).toContain(
    '<title>train; run pln_1 (vision); job job_train; nodes node-1; lr=0.1; model sha256:model</title>',
  );
});

test('items of a step are folded, with their states', () => {
  const items = Array.from({ length: 50 }, (_, index) =>
    aStep('train', ['data'], [`model${index}`], {
      index,
      item: String(index),
      state: index < 3 ? 'failed' : 'succeeded',
    }),
  );
  const usedBy = [
    ...items,
    aStep(
      'pick',
      items.slice(3).map(({ index }) => `model${index}`),
      ['best'],
    ),
  ];
  const lineage = aLineage({ subject: '/data', madeBy: [aStep('prepare', [], ['data'])], usedBy });
  const { nodes, edges } = drawnLineage(lineage);
  expect(nodes.map(({ steps }) => steps.length)).toEqual([1, 50, 1]);
  expect(edges.map(({ from, to }) => `${from}>${to}`)).toEqual(['0>1', '1>2']);
  expect(lineageDrawing(lineage, 'dot')).toContain('"train (50 items)\\npln_1\\n3 failed, 47 succeeded"');
});

test('a deep and wide history stays bounded, and tells what is not drawn', () => {
  const chain = Array.from({ length: 200 }, (_, at) =>
    aStep(`s${at}`, at === 0 ? [] : [`a${at - 1}`], [`a${at}`]),
  );
  const wide = Array.from({ length: 2_000 }, (_, at) => aStep(`w${at}`, ['a199'], [`b${at}`]));
  const deep = aLineage({ subject: '/a199', madeBy: chain, usedBy: wide.slice(0, 50) });
  expect(drawnLineage(deep)).toMatchObject({ stepsLeftOut: 0, edgesLeftOut: 0 });
  expect(Math.max(...drawnLineage(deep).nodes.map(({ layer }) => layer))).toBe(200);
  const [, width = ''] = /<svg [^>]*width="(\d+)"/.exec(lineageDrawing(deep, 'svg')) ?? [];
  expect(Number(width)).toBeLessThan(1_200);
  const all = aLineage({ subject: '/a199', madeBy: chain, usedBy: wide });
  const { nodes, stepsLeftOut } = drawnLineage(all);
  expect([nodes.length, stepsLeftOut]).toEqual([400, 1_800]);
  expect(nodes.find(({ isSubject }) => isSubject)?.steps[0].step).toBe('s199');
  for (const form of ['dot', 'html'] as const)
    expect(lineageDrawing(all, form)).toContain(
      'Not drawn: 1800 steps far from it. With -o json all steps are printed.',
    );
});

test('a circle, which only wrong data can have, is drawn too', () => {
  const lineage = aLineage({ madeBy: [aStep('a', ['y'], ['x']), aStep('b', ['x'], ['y'])] });
  expect(drawnLineage(lineage).edges).toHaveLength(2);
  for (const form of lineageDrawings) expect(lineageDrawing(lineage, form)).not.toMatch(/NaN|undefined/);
});

/** A statement a line, whose texts are in quotes; nothing but what is escaped stands in them. */
const dotLine =
  /^(?: {2}(?:n\d+|label|node|edge)(?: -> n\d+)?(?: \[|=)(?:[a-z]+=)?(?:"(?:[^"\\&\n]|\\\\|\\"|\\n|&amp;)*"|[a-z0-9, =[\]])*;|digraph lineage \{|\})$/;

test('no name becomes markup or a statement', () => {
  const hostile = anyText(0, 20).map((text) => `"'><script>&\\"];\n${text}`);
  fc.assert(
    fc.property(hostile, hostile, (name, other) => {
      const change = { run: name, item: other, nodes: [name], params: { [name]: other }, code: other };
      const lineage = aLineage({
        subject: name,
        madeBy: [aStep(name, [], [other]), aStep('b', [other], [name], change)],
      });
      const [dot = '', svg = '', html = ''] = lineageDrawings.map((form) => lineageDrawing(lineage, form));
      expect([problemOfMarkup(svg), problemOfMarkup(html)]).toEqual([null, null]);
      expect(html).not.toMatch(/<script|javascript:|href=|src=|url\(|@import| on\w+="/i);
      expect(
        dot
          .trimEnd()
          .split('\n')
          .filter((line) => !dotLine.test(line)),
      ).toEqual([]);
    }),
    { numRuns: 60 },
  );
});
