/** Pipelines: runs of steps that hand on artifacts to each other, and where an artifact comes from. */
import { MusterError } from '@muster/common/errors';
import {
  type ArtifactView,
  hasPipelineEnded,
  type LineageStepView,
  type PipelineRunView,
  type PipelineStepView,
  pipelineStates,
  pipelineStepStates,
} from '@muster/common/pipelines';
import * as z from 'zod';
import { cursor, dryRun, limitOf, listedMax, nextCursor, requestId } from '../parameters.ts';
import { brief, briefEntries, firstFitting, isoTime, pageFrom } from '../size.ts';
import { tool } from '../tool.ts';

export const pipelineFile = z
  .record(z.string(), z.unknown())
  .describe(
    'the pipeline file with its own names (docs/pipelines.md): {"name": "vision", "artifacts": "/shared/artifacts", "steps": ' +
      '{"prepare": {"run": ["python", "prepare.py", "$' +
      '{outputs.data}"], "outputs": {"data": {"type": "directory"}}}, "train": {"job": {"command": ["python", "train.py", "--data=$' +
      '{inputs.data}"], "resources": {"gpus": 1}}, "inputs": {"data": "prepare.data"}}}}',
  );

export const pipelineParams = z.record(z.string(), z.unknown()).default({});

const runId = z
  .string()
  .min(1)
  .max(128)
  .describe(
    'id of the run (pln_…), the unique beginning of one, the name of a pipeline for its newest run, or latest',
  );

const artifactRow = z.object({ name: z.string(), path: z.string(), bytes: z.number(), digest: z.string() });

function artifactRowOf({ name, path, bytes, digest }: ArtifactView): z.input<typeof artifactRow> {
  return { name, path: brief(path, 400), bytes, digest };
}

const runRow = z.object({
  runId: z.string(),
  name: z.string(),
  state: z.enum(pipelineStates),
  reason: z.string().nullable().describe('why it has failed or was stopped'),
  parameters: z.record(z.string(), z.unknown()).describe('as many as there is room for'),
  rerunOf: z.string().nullable(),
  trigger: z.string().nullable().describe('the trigger that has started it; null: a user has'),
  project: z.string(),
  user: z.string(),
  createdAt: z.string(),
  endedAt: z.string().nullable(),
});

function runRowOf(run: PipelineRunView): z.input<typeof runRow> {
  const { id, name, state, reason, params, rerunOf, trigger, project, user, createdAtMs, endedAtMs } = run;
  return {
    runId: id,
    name,
    state,
    reason: brief(reason),
    parameters: briefEntries(params, 600),
    rerunOf,
    trigger,
    project,
    user,
    createdAt: isoTime(createdAtMs),
    endedAt: isoTime(endedAtMs),
  };
}

const stepRow = z.object({
  step: z.string(),
  group: z.string().describe('steps, on_failure or finally'),
  index: z.number().describe('of a step with for_each, of its item'),
  state: z.enum(pipelineStepStates),
  tries: z.number(),
  workloadId: z.string().nullable().describe('of the newest try, for the other tools'),
  sweepId: z.string().nullable(),
  cachedFrom: z.string().nullable().describe('the run whose outputs it has'),
  reason: z.string().nullable(),
  outputs: z.array(artifactRow),
  outputsNotShown: z.number(),
});

const outputsBytesMax = 1_500;

function stepRowOf(view: PipelineStepView): z.input<typeof stepRow> {
  const { step, group, index, state, tries, jobId, sweepId, cachedFrom, reason, outputs } = view;
  const shown = firstFitting(outputs.map(artifactRowOf), outputsBytesMax);
  return {
    step,
    group,
    index,
    state,
    tries,
    workloadId: jobId,
    sweepId,
    cachedFrom,
    reason: brief(reason),
    outputs: [...shown],
    outputsNotShown: outputs.length - shown.length,
  };
}

/** One line about a run. */
function runSentence({ id, name, state, reason, steps }: PipelineRunView): string {
  const why = reason === null ? '' : `: ${brief(reason)}`;
  const count = (...states: readonly string[]) => steps.filter((each) => states.includes(each.state)).length;
  const done = `${count('succeeded', 'cached')} are done`;
  const others = `${count('running')} run, ${count('failed', 'stopped')} have failed`;
  return `${name} (${id}) is ${state}${why}; of ${steps.length} steps ${done}, ${others}.`;
}

export const pipelineRun = tool({
  name: 'pipeline_run',
  title: 'Run a pipeline',
  about:
    'Starts a run of steps that hand on artifacts: each step is a workload, a sweep or a command, and starts once its inputs are there. ' +
    'With dryRun it is checked only. Start with a requestId, so that a repeated call never makes a second run; then follow it with ' +
    'pipeline_get.',
  verb: 'submit',
  effect: 'change',
  idempotent: false,
  input: z.strictObject({
    pipeline: pipelineFile,
    parameters: pipelineParams.describe('values for the params of the file that differ from their defaults'),
    noCache: z.boolean().default(false).describe('take no step from an earlier run'),
    requestId,
    dryRun,
  }),
  output: z.object({ dryRun: z.boolean(), run: runRow.describe('of a dry run without an id') }),
  async run(given, { api, newRequestId }) {
    const run = await api.runPipeline({
      specJson: JSON.stringify(given.pipeline),
      paramsJson: JSON.stringify(given.parameters),
      requestId: given.requestId ?? newRequestId(),
      dryRun: given.dryRun,
      noCache: given.noCache,
    });
    const data = { dryRun: given.dryRun, run: runRowOf(run) };
    const steps = `${run.steps.length} steps`;
    if (given.dryRun) return { data, text: `Dry run, nothing was started. Valid; it would have ${steps}.` };
    return { data, text: `Started ${run.id} with ${steps}. Follow it with pipeline_get.` };
  },
});

export const pipelineGet = tool({
  name: 'pipeline_get',
  title: 'Show a run of a pipeline',
  about: 'How far a run is: its steps with their states, workloads, outputs and why they have failed.',
  verb: 'read',
  effect: 'read',
  idempotent: true,
  input: z.strictObject({
    runId,
    states: z
      .array(z.enum(pipelineStepStates))
      .max(10)
      .default([])
      .describe('only steps in these states; default: all'),
    limit: limitOf(100, 20),
    cursor,
  }),
  output: z.object({ run: runRow, steps: z.array(stepRow), total: z.number(), nextCursor }),
  async run(given, { api }) {
    const run = await api.getPipeline(given.runId);
    const chosen = run.steps.filter(({ state }) => given.states.length === 0 || given.states.includes(state));
    const { page, nextCursor: next } = pageFrom(chosen.map(stepRowOf), given);
    return {
      data: { run: runRowOf(run), steps: [...page], total: chosen.length, nextCursor: next },
      text: runSentence(run),
    };
  },
});

export const pipelineList = tool({
  name: 'pipeline_list',
  title: 'List runs of pipelines',
  about: 'Runs that you may see, newest first. pipeline_get has the steps of one.',
  verb: 'read',
  effect: 'read',
  idempotent: true,
  input: z.strictObject({
    active: z.boolean().default(false).describe('only those that have not ended'),
    limit: limitOf(50, 20),
    cursor,
  }),
  output: z.object({ runs: z.array(runRow), nextCursor }),
  async run(given, { api }) {
    const { runs } = await api.listPipelines({ active: given.active, limit: listedMax });
    const { page, nextCursor: next } = pageFrom(runs.map(runRowOf), given);
    return {
      data: { runs: [...page], nextCursor: next },
      text: `${page.length} of ${runs.length} runs${next === null ? '' : '; pass nextCursor for more'}.`,
    };
  },
});

export const pipelineStop = tool({
  name: 'pipeline_stop',
  title: 'Stop a run of a pipeline',
  about:
    'Starts no more of its steps, and stops those that run, each with its stop_grace to save a checkpoint. Steps under finally still run.',
  verb: 'change',
  effect: 'destroy',
  idempotent: true,
  input: z.strictObject({
    runId,
    reason: z.string().max(200).default('').describe('shown with the run'),
    dryRun,
  }),
  output: z.object({ dryRun: z.boolean(), run: runRow }),
  async run(given, { api }) {
    const before = await api.getPipeline(given.runId);
    const wasStopped = before.state === 'stopping' || before.state === 'stopped';
    // A repeated call finds what the first one has done.
    if (hasPipelineEnded(before.state) && !wasStopped)
      throw new MusterError(
        'failed_precondition',
        `${before.id} is ${before.state}: there is nothing to stop`,
      );
    const run = given.dryRun || wasStopped ? before : await api.stopPipeline(before.id, given.reason);
    const data = { dryRun: given.dryRun, run: runRowOf(run) };
    const running = before.steps.filter(({ state }) => state === 'running').length;
    if (wasStopped) return { data, text: `${run.id} had been stopped before.` };
    if (given.dryRun) return { data, text: `Dry run, nothing was stopped. ${running} steps run.` };
    return { data, text: `${run.id} starts no more steps but those under finally; ${running} are stopped.` };
  },
});

const lineageRow = z.object({
  runId: z.string(),
  pipeline: z.string(),
  step: z.string(),
  index: z.number(),
  state: z.enum(pipelineStepStates),
  workloadId: z.string().nullable(),
  nodes: z.array(z.string()),
  parameters: z.record(z.string(), z.unknown()).describe('of its run, as many as there is room for'),
  code: z.string().nullable().describe('digest of the code; null: the file does not say it'),
  inputs: z.array(artifactRow),
  outputs: z.array(artifactRow),
  artifactsNotShown: z.number(),
  startedAt: z.string(),
});

function lineageRowOf(view: LineageStepView): z.input<typeof lineageRow> {
  const { run, pipeline, step, index, state, jobId, nodes, params, code, startedAtMs } = view;
  const inputs = firstFitting(view.inputs.map(artifactRowOf), outputsBytesMax);
  const outputs = firstFitting(view.outputs.map(artifactRowOf), outputsBytesMax);
  return {
    runId: run,
    pipeline,
    step,
    index,
    state,
    workloadId: jobId,
    nodes: [...firstFitting(nodes, 300)],
    parameters: briefEntries(params, 600),
    code,
    inputs: [...inputs],
    outputs: [...outputs],
    artifactsNotShown: view.inputs.length + view.outputs.length - inputs.length - outputs.length,
    startedAt: isoTime(startedAtMs),
  };
}

export const lineageGet = tool({
  name: 'lineage_get',
  title: 'Show where an artifact comes from',
  about:
    'The steps that an artifact, a checkpoint, a run or a workload comes from, with parameters, code and inputs, and the steps that have ' +
    'used it or what was made of it.',
  verb: 'read',
  effect: 'read',
  idempotent: true,
  input: z.strictObject({
    subject: z
      .string()
      .min(1)
      .max(4_096)
      .describe('path or digest of an artifact, path of a checkpoint, id of a run or of a workload'),
    direction: z.enum(['made_by', 'used_by']).default('made_by').describe('which of the two lists'),
    limit: limitOf(100, 20),
    cursor,
  }),
  output: z.object({
    subject: z.string(),
    kind: z.string().describe('artifact, run or job'),
    steps: z.array(lineageRow).describe('the earliest first'),
    total: z.number(),
    nextCursor,
  }),
  async run(given, { api }) {
    const { subject, kind, madeBy, usedBy } = await api.getLineage(given.subject);
    const steps = given.direction === 'made_by' ? madeBy : usedBy;
    const { page, nextCursor: next } = pageFrom(steps.map(lineageRowOf), given);
    return {
      data: { subject: brief(subject, 400), kind, steps: [...page], total: steps.length, nextCursor: next },
      text: `${brief(subject, 200)} comes from ${madeBy.length} steps, and ${usedBy.length} have used it.`,
    };
  },
});
