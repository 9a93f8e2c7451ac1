/** What the files of stored runs say. Reading one checks every job in it, which takes a millisecond for some ten steps. */
import { readPipeline } from '@muster/pipelines/file/pipelineFile';
import type { PipelineSpec } from '@muster/pipelines/model';
import type { StoredPipeline } from '../store/pipelines.ts';

/** By the run as it is stored now: it becomes another value with each change of its state. */
const known = new WeakMap<StoredPipeline, PipelineSpec>();

/** @throws {Error} for a file that this version cannot read */
export function storedPipelineSpec(run: StoredPipeline): PipelineSpec {
  const before = known.get(run);
  if (before !== undefined) return before;
  const read = readPipeline(JSON.parse(run.spec));
  if (!read.ok)
    throw new Error(`the stored pipeline ${run.id} cannot be read: ${read.findings[0]?.message ?? ''}`);
  known.set(run, read.pipeline);
  return read.pipeline;
}
