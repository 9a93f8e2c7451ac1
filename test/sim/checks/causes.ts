/**
 * Checks G7 and G4 of docs/guarantees.md. G7: the recorded cause of an attempt's end is one that its program, its machines
 * or its users have brought about. G4: an agent or coordinator that was killed is never the cause.
 */
import type { JobId } from '@muster/common/ids';
import type { JobSpecFile } from '@muster/common/spec/types';
import type { Cause } from '@muster/common/views';
import type { ProcessEnded } from '../history.ts';
import type { Workload } from '../workload.ts';
import type { World } from '../world.ts';
import type { ExecutionCheck } from './executions.ts';
import type { LogCheck } from './log.ts';
import type { PathsCheck } from './paths.ts';
import type { PipelineCheck } from './pipelines.ts';
import type { SweepStepCheck } from './sweepSteps.ts';
import type { Verdict } from './verdict.ts';

export interface CauseCheckParts {
  readonly world: World;
  readonly workload: Workload;
  readonly executions: ExecutionCheck;
  readonly log: LogCheck;
  readonly paths: PathsCheck;
  readonly pipelines: PipelineCheck;
  readonly sweepSteps: SweepStepCheck;
  readonly verdict: Verdict;
}

export function checkCauses(parts: CauseCheckParts): void {
  for (const { kind, subject, data } of parts.log.events) {
    if (kind !== 'job.stopping' && kind !== 'job.failed' && kind !== 'job.cancelled') continue;
    const cause = data['cause'] as Cause;
    const isTrue = isTrueCause(parts, subject as JobId, String(data['name']), cause);
    parts.verdict.require(
      isTrue,
      'G7',
      () => `${kind} of ${subject} for no reason: ${JSON.stringify(cause)}`,
    );
  }
}

function isTrueCause(
  parts: CauseCheckParts,
  jobId: JobId,
  name: string,
  { kind, node, message }: Cause,
): boolean {
  const { world, workload, executions } = parts;
  const submission = workload.submissions.get(name);
  const { machine, lost = false } = world.sites.find((site) => site.machine.name === node) ?? {};
  const wasRebooted = lost || (machine !== undefined && (machine.boots > 1 || !machine.power.alive));
  const hasFailedAt = () =>
    [...executions.exits.values()].some(
      ({ task, machine: where, exitCode, by }) =>
        task.jobId === jobId && where === node && exitCode !== 0 && isOwnEnd(by, submission?.file),
    );
  switch (kind) {
    case 'cancelled':
      return (
        workload.stopSent.has(jobId) ||
        parts.pipelines.wasStopped(jobId) ||
        parts.sweepSteps.isTrial(jobId) ||
        (message.includes('budget') && submission?.budget?.gpuHours != null)
      );
    case 'phase_unmet':
      return submission?.file.phases?.some(({ success }) => success !== undefined) === true;
    case 'artifact_store':
    case 'artifact_refused':
    case 'artifact_invalid':
    case 'container_engine':
      // No job of the simulation moves artifacts or is refused by a container engine.
      return false;
    case 'preempted':
      if (message.startsWith('preempted by ')) return submission?.file.preemptible === true;
      return message.includes(' is being drained') || workload.requeueSent.has(jobId);
    case 'time_limit':
      return submission?.file.max_runtime !== undefined;
    case 'exit_code':
      return hasFailedAt();
    case 'node_lost':
      // A silent node cannot be told from a slow one: either nothing had been started there, or it was fenced.
      return (
        wasRebooted ||
        message.includes('went silent') ||
        message.endsWith('its lease has expired') ||
        (submission?.file.on_lease_expiry === 'kill' && message.includes('killed because its lease ran out'))
      );
    case 'image_pull':
      return kind === submission?.program.startError || machine?.registryEverFailed === true;
    case 'gpu_fault':
      return machine?.health.everIll === true;
    case 'disk_full':
      return machine?.disk.wasEverFull === true;
    case 'rendezvous_timeout':
      return /\b(?:prepare|rendezvous)_timeout of \d+ s: node-/.test(message);
    case 'rendezvous':
      return parts.paths.wereBad(jobId);
    case 'unknown':
      return wasRebooted;
    case 'checkpoint_conflict':
      return holdsThoseOfAnother(parts, jobId, message);
    case 'corrupt_checkpoint':
    case 'python_exception':
      // Also what a checkpoint did to a program that began from it.
      return hasFailedAt() || message.endsWith('is not there');
    default:
      return (
        kind === submission?.program.startError || (kind === submission?.program.failureKind && hasFailedAt())
      );
  }
}

/** Its directory is one that it names itself, where the job of the message has run, and it continues none of that job's work. */
function holdsThoseOfAnother(
  { workload, executions, log }: CauseCheckParts,
  jobId: JobId,
  message: string,
): boolean {
  const other = / did not start: it holds checkpoints of (job_\w+)$/.exec(message)?.[1];
  const submitted = new Map(
    log.events.filter(({ kind }) => kind === 'job.submitted').map(({ subject, data }) => [subject, data]),
  );
  const directoryOf = (id: string) =>
    workload.submissions.get(String(submitted.get(id)?.['name']))?.file.checkpoint?.dir;
  const lineage = new Set<unknown>();
  for (let id: unknown = jobId; typeof id === 'string'; id = submitted.get(id)?.['requeuedFrom'])
    lineage.add(id);
  return (
    other !== undefined &&
    directoryOf(jobId) !== undefined &&
    directoryOf(jobId) === directoryOf(other) &&
    !lineage.has(other) &&
    [...executions.started].some((key) => key.startsWith(`${other}.`))
  );
}

/** No person and no retry has made it end. */
function isOwnEnd(by: ProcessEnded['by'], file: JobSpecFile | undefined): boolean {
  return by === 'itself' || (file?.on_lease_expiry === 'kill' && by !== 'reboot');
}
