/**
 * What happens on a node before a gang is released: everything that a task needs is seen to be there, and the paths to
 * the other nodes are tried. A node that cannot get ready says so as the end of the task, with the reason.
 */

import { untilAborted } from '@muster/common/async';
import { messageOf } from '@muster/common/errors';
import type { TaskKey } from '@muster/common/ids';
import { isCauseKind } from '@muster/common/spec/causes';
import type { JobSpec } from '@muster/common/spec/types';
import type { Cause } from '@muster/common/views';
import type { TaskLaunch } from '../drivers/driver.ts';
import type { Assignment } from '../taskFacts/assignment.ts';
import { DriverError } from '../taskFacts/errors.ts';
import type { TaskEntry, Work } from './entry.ts';
import { buildLaunch, launchCheckpoints, type TaskRelease, writeLaunchFiles } from './launch.ts';
import type { ManagerParts } from './parts.ts';
import type { TaskPhases } from './phases.ts';

/** This node cannot run the task, and trying again would not help. */
class NotReady extends Error {
  override readonly name = 'NotReady';
  readonly kind: Cause['kind'];

  constructor(kind: Cause['kind'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.kind = kind;
  }
}

export class Preparation {
  private readonly parts: ManagerParts;
  private readonly phases: TaskPhases;
  /** Aborts when the agent closes. */
  private readonly closing: AbortSignal;
  /** Another task of this node that still has one of the GPUs of this one. */
  private readonly gpuHolder: (entry: TaskEntry) => TaskKey | null;

  constructor(
    parts: ManagerParts,
    phases: TaskPhases,
    closing: AbortSignal,
    gpuHolder: Preparation['gpuHolder'],
  ) {
    this.parts = parts;
    this.phases = phases;
    this.closing = closing;
    this.gpuHolder = gpuHolder;
  }

  /** Given up when the task is no longer needed. */
  async prepare(entry: TaskEntry): Promise<void> {
    const { assignment } = entry;
    if (assignment === null)
      throw new Error('the coordinator asked to prepare a task without saying which job');
    try {
      await whileWanted(entry, { kind: 'preparing' }, (abort) =>
        this.takeSteps(entry, assignment, AbortSignal.any([abort, this.closing])),
      );
    } catch (error) {
      if (this.closing.aborted) throw error;
      if (error instanceof NotReady || error instanceof DriverError) {
        await this.phases.freePort(entry);
        entry.doing = null;
        this.phases.endUnstarted(entry, kindOf(error), error.message);
        return;
      }
      // Tried again; should the time for it run out, the coordinator can say what it was about.
      entry.doing = `retrying: ${messageOf(error)}`;
      throw error;
    }
  }

  private async takeSteps(entry: TaskEntry, assignment: Assignment, abort: AbortSignal): Promise<void> {
    // 1. The intent, on disk before anything else: whatever goes wrong from here on has a place to be noted.
    await this.writeIntent(entry, assignment);
    abort.throwIfAborted();
    // 2. The GPUs: the coordinator's view of them may be older than what this node knows.
    const gpuProblem = await this.parts.gpuProblem(assignment.gpuUuids, abort);
    abort.throwIfAborted();
    if (gpuProblem !== null) throw new NotReady(gpuProblem.kind, gpuProblem.message);
    // To the coordinator a task that was fenced is over; here it may be frozen, or being killed, for a while yet.
    const holder = this.gpuHolder(entry);
    if (holder !== null) throw new Error(`GPU still held by ${holder}, which must end first`);
    // 3. Directories, image, volumes, program.
    const { checkpointJobId, spec } = assignment;
    await this.parts.checkpointDirs.prepare(checkpointJobId, spec).catch((error: unknown) => {
      throw new NotReady(kindOfFileError(error), `no checkpoint directory: ${messageOf(error)}`, {
        cause: error,
      });
    });
    const place = await untilAborted(this.placeProblem(assignment, spec), abort);
    if (place !== null) throw new NotReady('unknown', place);
    // Before anything of the job runs, here or, the gang being released together, anywhere else.
    const problem = await untilAborted(this.parts.checkpoints.prepare(assignment), abort);
    if (problem !== null) throw new NotReady(problem.kind, problem.message);
    await writeLaunchFiles(this.parts.node, this.phases.location(entry), assignment, null);
    const launch = this.launchOf(entry, assignment, null);
    await this.phases.driverOf(entry).prepare(launch, (what) => void (entry.doing = what), abort);
    abort.throwIfAborted();
    // 4. An address that the others of the gang could reach, and the ports, last: they are held for as short as can be.
    await this.parts.readNetwork();
    abort.throwIfAborted();
    const unreachable = assignment.nodeCount > 1 ? this.parts.rendezvous.endpointProblem(spec.network) : null;
    if (unreachable !== null) throw new NotReady('rendezvous', unreachable);
    if (entry.port === null && needsPort(assignment)) entry.port = await this.hold(entry);
    if (abort.aborted) await this.phases.freePort(entry);
    abort.throwIfAborted();
    entry.doing = null;
    entry.prepared = true;
  }

  /** Tries the paths; given up when others are to be tried, or none. */
  async check(entry: TaskEntry): Promise<void> {
    const { order, assignment } = entry;
    if (order?.kind !== 'check' || assignment === null) return;
    const { check } = order;
    const { addresses, preflight } = check;
    // What is measured has the job's own environment, and a rendezvous of its own; no lease, for it is not the task.
    const release = preflight === null ? null : { ...preflight.master, addresses, lease: null };
    const launch = this.launchOf(entry, assignment, release);
    await whileWanted(entry, { kind: 'checking', round: check.round }, async (abort) => {
      const either = AbortSignal.any([abort, this.closing]);
      const findings = await this.parts.rendezvous.check(entry.task, launch, check, either);
      // What is found while it is being given up tells of that, not of the paths.
      either.throwIfAborted();
      entry.findings = findings;
      entry.findingsSent = false;
    });
  }

  /** Says that the task is prepared. */
  announce(entry: TaskEntry): void {
    const { task, assignment } = entry;
    const port = entry.port?.port ?? null;
    const network = assignment?.spec.network ?? null;
    this.parts.send({
      kind: 'prepared',
      task,
      master: task.nodeRank === 0 && port !== null ? { addr: this.parts.address, port } : null,
      endpoints: this.parts.rendezvous.endpoints(network),
      testPort: port,
    });
  }

  /** Of a directory that the job names, on the node that looks after it. */
  private async placeProblem({ task, checkpointJobId }: Assignment, spec: JobSpec): Promise<string | null> {
    const { checkpointDirs, checkpointPlaceProblem } = this.parts;
    const root = checkpointDirs.isOwn(spec) ? null : checkpointDirs.hostPathFor(checkpointJobId, spec);
    if (task.nodeRank !== 0 || root === null) return null;
    return checkpointPlaceProblem(root, spec.checkpoint.keepLast !== null);
  }

  private async writeIntent(entry: TaskEntry, assignment: Assignment): Promise<void> {
    if (entry.phase !== null) return;
    const { records, bootId } = this.parts;
    const phase = { kind: 'prepared' } as const;
    try {
      await records.create({ assignment, bootId, phase });
    } catch (error) {
      const message = `no task directory: ${messageOf(error)}`;
      throw new NotReady(kindOfFileError(error), message, { cause: error });
    }
    entry.phase = phase;
  }

  private async hold(entry: TaskEntry) {
    try {
      return await this.parts.rendezvous.hold(entry.task);
    } catch (error) {
      throw new NotReady('rendezvous', `no free port: ${messageOf(error)}`, { cause: error });
    }
  }

  private launchOf(entry: TaskEntry, assignment: Assignment, release: TaskRelease | null): TaskLaunch {
    const checkpoints = launchCheckpoints(this.parts.checkpointDirs, assignment);
    return buildLaunch(this.parts.node, this.phases.location(entry), assignment, checkpoints, release);
  }
}

/** Of rank 0 it is the rendezvous'; the others of a gang only answer their peers with it. */
function needsPort({ task, nodeCount }: Assignment): boolean {
  return task.nodeRank === 0 || nodeCount > 1;
}

/**
 * Does what may turn out to be in vain. Given up, it is as if nobody had asked for it.
 * @returns whether it was given up
 */
export async function whileWanted(
  entry: TaskEntry,
  what: Work,
  act: (abort: AbortSignal) => Promise<void>,
): Promise<boolean> {
  const abort = new AbortController();
  entry.work = { what, abort };
  try {
    await act(abort.signal);
    return false;
  } catch (error) {
    if (!abort.signal.aborted || error !== abort.signal.reason) throw error;
    return true;
  } finally {
    entry.work = null;
  }
}

function kindOf(error: NotReady | DriverError): Cause['kind'] {
  if (error instanceof NotReady) return error.kind;
  return isCauseKind(error.causeKind) ? error.causeKind : 'unknown';
}

function kindOfFileError(error: unknown): Cause['kind'] {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  return code === 'ENOSPC' || code === 'EDQUOT' ? 'disk_full' : 'unknown';
}
