/** What is checked of a pipeline's steps before a run is accepted, so that nothing is started of one that cannot end. */
import { MusterError } from '@muster/common/errors';
import type { Finding } from '@muster/common/spec/problems';
import { noOrigin, toProblems } from '@muster/common/spec/problems';
import type { JobSpec } from '@muster/common/spec/types';
import { checkJobSpec } from '@muster/common/spec/validate';
import { readSweep } from '@muster/experiments/file/sweepFile';
import { countOfInstances, itemsOf, stepJob, stepSweep } from '@muster/pipelines/file/stepJob';
import type { PipelineSpec, PipelineStep, PipelineValues } from '@muster/pipelines/model';
import { substitute } from '@muster/pipelines/substitute';
import type { AgentRegistry } from '../agents/registry.ts';
import { checkJobLease } from '../leases/leases.ts';
import type { SecretVault } from '../secrets/vault.ts';
import { trialsOfSweep } from '../sweeps/trialCount.ts';
import { nextRound } from '../work/inOrder.ts';

/** Each is a row, a job, and a check before the run is accepted. */
const instancesMax = 10_000;
/** A check takes some tenths of a millisecond. */
const checksPerTurn = 50;

export interface StepCheckParts {
  readonly agents: Pick<AgentRegistry, 'heartbeatIntervalMs'>;
  readonly vault: Pick<SecretVault, 'require'>;
}

/** With a sample in the place of what only earlier steps make. @throws {MusterError} as a submit of a job of theirs */
export async function requireSteps(
  spec: PipelineSpec,
  params: PipelineValues,
  { agents, vault }: StepCheckParts,
): Promise<void> {
  requireCount(spec, params);
  await requireStore(spec, params, vault);
  let checks = 0;
  for (const step of spec.steps) {
    const items = itemsOf(step, params) ?? [null];
    for (const [index, item] of items.entries()) {
      checks += 1;
      if (checks % checksPerTurn === 0) await nextRound();
      const inputs = Object.fromEntries(step.inputs.map((each) => [each.name, sampleOf(each.name)]));
      const { project } = spec;
      const run = { pipeline: spec, run: 'run', project, step, index, try: 1, item, params, inputs };
      const place = [step.group, step.name, step.work.kind === 'run' ? 'run' : step.work.kind];
      let job: JobSpec;
      if (step.work.kind === 'sweep') {
        const read = readSweep(stepSweep(run));
        if (!read.ok) throw refusal(place, read.findings);
        await trialsOfSweep(read.sweep);
        ({ job } = read.sweep);
      } else {
        const made = stepJob(run);
        if (!made.ok) throw refusal(place, made.findings);
        ({ job } = made);
      }
      checkJobLease(job.leaseMs, agents.heartbeatIntervalMs);
      await vault.require(job);
    }
  }
}

function requireCount({ steps }: PipelineSpec, params: PipelineValues): void {
  const count = steps.reduce((sum, step) => sum + countOfInstances(step, params), 0);
  if (count <= instancesMax) return;
  const message = `the run would start steps ${count} times`;
  const expected = `at most ${instancesMax}, each item of for_each counted`;
  const problem = { path: 'steps', message, expected, suggestion: null };
  throw new MusterError('invalid', `steps: ${message}; expected ${expected}`, { problems: [problem] });
}

/** Its place with the values of parameters, and its secret: what a step would otherwise find out once it is its turn. */
async function requireStore(
  { artifacts, project }: PipelineSpec,
  params: PipelineValues,
  vault: StepCheckParts['vault'],
): Promise<void> {
  if (artifacts?.kind !== 'store') return;
  const url = substitute(artifacts.url, { params, inputs: {}, outputs: {}, item: null });
  const checked = checkJobSpec({ command: ['true'], project, artifacts: { url, secret: artifacts.secret } });
  if (!checked.ok) throw refusal([], checked.findings);
  try {
    await vault.require(checked.spec);
  } catch (error) {
    if (!(error instanceof MusterError) || error.code !== 'not_found') throw error;
    const finding = { path: ['artifacts', 'secret'], at: 'value', message: error.message } as const;
    throw refusal([], [{ ...finding, expected: null, suggestion: null }]);
  }
}

function sampleOf(name: PipelineStep['name']): string {
  return `/inputs/${name}`;
}

function refusal(place: readonly string[], findings: readonly Finding[]): MusterError {
  const problems = toProblems(
    findings.map((finding) => ({
      finding: { ...finding, path: [...place, ...finding.path] },
      origin: noOrigin,
    })),
  );
  const [first] = problems;
  return new MusterError('invalid', `invalid pipeline: ${first?.path ?? ''}: ${first?.message ?? ''}`, {
    problems,
  });
}
