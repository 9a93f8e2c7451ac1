/**
 * G7 and G4: an attempt ends for the reason that is recorded, as its program, its machines and its users made it. An agent
 * or coordinator that is killed is no reason: what runs, runs on.
 */
import type { JobId } from '@muster/common/ids';
import type { Cause } from '@muster/common/views';
import type { Workload } from '../workload.ts';
import type { World } from '../world.ts';
import type { ExecutionCheck } from './executions.ts';
import type { LogCheck } from './log.ts';
import type { Verdict } from './verdict.ts';

export interface CauseCheckParts {
  readonly world: World;
  readonly workload: Workload;
  readonly executions: ExecutionCheck;
  readonly log: LogCheck;
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
  { world, workload, executions }: CauseCheckParts,
  jobId: JobId,
  name: string,
  { kind, node, message }: Cause,
): boolean {
  const submission = workload.submissions.get(name);
  const wasRebooted = world.sites.some(
    ({ machine, lost }) => machine.name === node && (lost || machine.boots > 1),
  );
  switch (kind) {
    case 'cancelled':
      return workload.stopSent.has(jobId);
    case 'preempted':
      return workload.requeueSent.has(jobId);
    case 'time_limit':
      return submission?.file.max_runtime !== undefined;
    case 'exit_code':
      return [...executions.exits.values()].some(
        ({ task, machine, by, exitCode }) =>
          task.jobId === jobId && machine === node && by === 'itself' && exitCode !== 0,
      );
    case 'node_lost':
      // Nobody can tell a silent node from a slow one, and nothing had been started there.
      return wasRebooted || message.includes('went silent');
    case 'unknown':
      return wasRebooted;
    default:
      return kind === submission?.program.startError;
  }
}
