/** The API's call about the lineage of artifacts. */
import { MusterError } from '@muster/common/errors';
import type { ArtifactView, LineageStepView } from '@muster/common/pipelines';
import { lineageToWire } from '@muster/common/wire/codec';
import { itemsOf } from '@muster/pipelines/file/stepJob';
import { LineageGraph } from '../pipelines/lineage.ts';
import { storedPipelineSpec } from '../pipelines/storedSpecs.ts';
import type { ClusterState } from '../state/state.ts';
import type { StoredPipeline, StoredPipelineStep } from '../store/pipelines.ts';
import type { Store } from '../store/store.ts';
import { type MusterCalls, unary } from './calls.ts';
import { visibleRuns } from './pipelines.ts';

export interface LineageCallParts {
  readonly state: ClusterState;
  readonly store: Pick<Store, 'readJob'>;
}

/** Of a digest, so that it is not the beginning of many. */
const digestLengthMin = 8;
/** Jobs that are looked at for the directory of a checkpoint. */
const jobsMax = 1_000;

interface Meant {
  readonly kind: 'artifact' | 'run' | 'job';
  readonly steps: readonly StoredPipelineStep[];
  readonly isMeant: (artifact: ArtifactView) => boolean;
}

export function lineageCalls({ state, store }: LineageCallParts): Pick<MusterCalls, 'GetLineage'> {
  return {
    GetLineage: unary(async ({ subject }, caller) => {
      const runs = visibleRuns(state, caller);
      const steps = runs.flatMap(({ id }) => [...(state.pipelines.steps.get(id)?.values() ?? [])]);
      const graph = new LineageGraph(steps);
      const meant =
        meantBy(subject === 'latest' ? (runs[0]?.id ?? subject) : subject, steps, graph) ??
        (subject.startsWith('/') ? await saverOf(subject, steps, store) : null);
      if (meant === null)
        throw new MusterError(
          'not_found',
          `no pipeline knows ${subject.slice(0, 80)}; expected the digest or path of an artifact, the path of a checkpoint, ` +
            'the id of a run or of a job of one',
        );
      const { madeBy, usedBy } = graph.of(meant.steps, meant.isMeant);
      const byId = new Map(runs.map((run) => [run.id, run]));
      const shown = (each: readonly StoredPipelineStep[]) =>
        Promise.all(each.map((step) => viewOf(step, byId.get(step.run), store)));
      return lineageToWire({
        subject,
        kind: meant.kind,
        madeBy: await shown(madeBy),
        usedBy: await shown(usedBy),
      });
    }),
  };
}

function meantBy(subject: string, steps: readonly StoredPipelineStep[], graph: LineageGraph): Meant | null {
  const ofRun = steps.filter(({ run }) => run === subject);
  if (ofRun.length > 0) return { kind: 'run', steps: ofRun, isMeant: () => true };
  const ofJob = steps.filter(({ jobId }) => jobId === subject);
  if (ofJob.length > 0) return { kind: 'job', steps: ofJob, isMeant: () => true };
  const digest = subject.replace(/^sha256:/, '');
  const isDigest = digest.length >= digestLengthMin && /^[0-9a-f]+$/.test(digest);
  const isMeant = (each: ArtifactView) =>
    each.path === subject || (isDigest && each.digest.startsWith(`sha256:${digest}`));
  const makers = graph.makersOf(isMeant);
  return makers.length === 0 ? null : { kind: 'artifact', steps: makers, isMeant };
}

/** The step whose job saves its checkpoints where the path is, the newest first. */
async function saverOf(
  path: string,
  steps: readonly StoredPipelineStep[],
  store: LineageCallParts['store'],
): Promise<Meant | null> {
  const newest = steps.toSorted((a, b) => b.startedAtMs - a.startedAtMs).slice(0, jobsMax);
  for (const step of newest) {
    const record = step.jobId === null ? null : await store.readJob(step.jobId);
    const dir = record?.job.spec.checkpoint.dir?.replace(/\/+$/, '');
    if (dir !== undefined && (path === dir || path.startsWith(`${dir}/`)))
      return { kind: 'job', steps: [step], isMeant: () => true };
  }
  return null;
}

async function viewOf(
  { run, step, index, state, jobId, inputs, outputs, startedAtMs }: StoredPipelineStep,
  stored: StoredPipeline | undefined,
  store: LineageCallParts['store'],
): Promise<LineageStepView> {
  const record = jobId === null ? null : await store.readJob(jobId);
  const nodes = new Set(record?.attempts.flatMap(({ tasks }) => tasks.map(({ node }) => String(node))));
  const spec = stored === undefined ? null : storedPipelineSpec(stored);
  const code = spec?.code ?? null;
  const found = spec?.steps.find(({ name }) => name === step);
  const items = found === undefined ? null : itemsOf(found, stored?.params ?? {});
  return {
    run,
    pipeline: stored?.name ?? '',
    step,
    index,
    item: items === null ? null : JSON.stringify(items[index]),
    state,
    jobId,
    nodes: [...nodes],
    params: stored?.params ?? {},
    code: code !== null && 'digest' in code ? code.digest : null,
    inputs: Object.values(inputs).flat(),
    outputs,
    startedAtMs,
  };
}
