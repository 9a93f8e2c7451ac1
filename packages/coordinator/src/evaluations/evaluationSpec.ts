/** The job that evaluates a checkpoint, from the job that has saved it. Pure. */
import { type Checkpoint, evaluatedCheckpointLabel, evaluatesLabel } from '@muster/common/checkpoints';
import { paramsInPhase } from '@muster/common/phases';
import { fillArrayIndex } from '@muster/common/spec/arrayIndex';
import { normalizeJobSpec } from '@muster/common/spec/serialize';
import type { JobSpec } from '@muster/common/spec/types';
import type { Job } from '../model.ts';
import { ownName, ownSpec } from '../spec/ownSpec.ts';

/** The longest name of a job, without room for what is added to it. */
const nameLengthMax = 42;
/** How far below the priority of the job, where the job does not say. */
const priorityBelow = 10;
/** Of the value of a label. */
const labelLengthMax = 256;
/** One that fails twice in the same way fails again, and no other checkpoint may take the place of the one that is meant. */
const attemptsMax = 2;

/**
 * It runs beside the training with what that has: image, volumes, secrets, environment, parameters. It is never evaluated itself, saves
 * where nobody looks, and gives its nodes to whoever asks for them.
 * @returns null: the job has no evaluations
 */
export function evaluationSpec(
  job: Pick<Job, 'id' | 'spec' | 'array' | 'phase'>,
  { name, step }: Pick<Checkpoint, 'name' | 'step'>,
  number: number,
): JobSpec | null {
  const own = ownSpec(job);
  const { evaluate } = own;
  if (evaluate === null) return null;
  // The agent fills `{resume}` in with the path as the job sees it, quoted where it stands in the text of a shell.
  const fill = (text: string) => {
    const filled = text.replaceAll('{checkpoint}', '{resume}');
    return job.array === null ? filled : fillArrayIndex(filled, job.array.index);
  };
  const plain = normalizeJobSpec({ command: ['true'] });
  const base = ownName(job).slice(0, nameLengthMax).replace(/-+$/, '');
  return {
    ...plain,
    name: `${base}-eval-${step ?? number}`,
    project: own.project,
    image: own.image,
    command: evaluate.command.map(fill),
    args: evaluate.args.map(fill),
    env: { ...own.env, ...evaluate.env },
    secrets: own.secrets,
    artifacts: own.artifacts === null ? null : { ...own.artifacts, outputs: [] },
    workdir: own.workdir,
    umask: own.umask,
    volumes: own.volumes,
    params: paramsInPhase(own, job.phase?.index ?? null),
    resources: evaluate.resources,
    priority: evaluate.priority ?? Math.max(0, own.priority - priorityBelow),
    preemptible: true,
    maxRuntimeMs: evaluate.timeoutMs,
    retry: { ...plain.retry, maxAttempts: attemptsMax },
    labels: {
      ...own.labels,
      [evaluatesLabel]: job.id,
      [evaluatedCheckpointLabel]: name.slice(0, labelLengthMax),
    },
  };
}
