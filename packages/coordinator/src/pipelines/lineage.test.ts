import type { ArtifactView } from '@muster/common/pipelines';
import { expect, test } from 'vitest';
import type { StoredPipelineStep } from '../store/pipelines.ts';
import { LineageGraph } from './lineage.ts';

function anArtifact(name: string): ArtifactView {
  return { name, type: 'file', path: `/${name}`, bytes: 1, digest: `sha256:${name}` };
}

let started = 0;
function aStep(
  step: string,
  inputs: readonly string[],
  outputs: readonly string[],
  change: Partial<StoredPipelineStep> = {},
): StoredPipelineStep {
  started += 1;
  return {
    run: 'pln_1',
    step,
    index: 0,
    state: 'succeeded',
    tries: 1,
    jobId: null,
    sweepId: null,
    cachedFrom: null,
    cacheKey: null,
    reason: null,
    inputs: { all: inputs.map(anArtifact) },
    outputs: outputs.map(anArtifact),
    best: null,
    isExpired: false,
    startedAtMs: started,
    endedAtMs: null,
    ...change,
  };
}

const prepare = aStep('prepare', [], ['data', 'words']);
const train = aStep('train', ['data'], ['model']);
const count = aStep('count', ['words'], ['counts']);
const cached = aStep('prepare', [], ['data', 'words'], {
  run: 'pln_2',
  state: 'cached',
  cachedFrom: 'pln_1',
});
const other = aStep('train', ['data'], ['other'], { run: 'pln_2' });
const report = aStep('report', ['model', 'counts'], [], { state: 'failed' });
const graph = new LineageGraph([report, other, cached, count, train, prepare]);

test('an artifact comes from what its makers have read, and leads to all that was made of it', () => {
  const isMeant = ({ name }: ArtifactView) => name === 'model';
  const makers = graph.makersOf(isMeant);
  expect(makers).toEqual([train]);
  expect(graph.of(makers, isMeant)).toEqual({ madeBy: [prepare, train], usedBy: [report] });
});

test('only the artifact itself counts, and what was taken from the cache is of its maker', () => {
  const isMeant = ({ name }: ArtifactView) => name === 'data';
  const makers = graph.makersOf(isMeant);
  expect(makers).toEqual([prepare]);
  expect(graph.of(makers, isMeant)).toEqual({ madeBy: [prepare], usedBy: [train, other, report] });
});
