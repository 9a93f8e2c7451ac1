/** A node that looks at checkpoint directories, as the agent wires it; verifications run in this process. */

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { scanCheckpoints } from '@muster/checkpoints/scan';
import { torchEntries, zipOf } from '@muster/checkpoints/testing/torchFile';
import type { Verification } from '@muster/checkpoints/verification';
import type { VerifierOrder } from '@muster/checkpoints/verifierProcess';
import { verifyCheckpoint } from '@muster/checkpoints/verify';
import type { CorruptCheckpoint } from '@muster/common/checkpoints';
import type { JobId, TaskRef } from '@muster/common/ids';
import { silentLogger } from '@muster/common/log';
import { decodeJobSpec } from '@muster/common/spec/serialize';
import { expect, onTestFinished, vi } from 'vitest';
import { readMounts } from '../host/mounts.ts';
import { checkpointDirs } from '../launch/checkpointDir.ts';
import type { Assignment } from '../taskFacts/assignment.ts';
import type { DirectoryProblem } from './directoryProblems.ts';
import type { CheckpointIndex } from './indexFile.ts';
import type { CheckpointMessage } from './parts.ts';
import { CheckpointWatcher } from './watcher.ts';

export const aTask: TaskRef = { jobId: 'job_0123456789ab' as JobId, attempt: 1, nodeRank: 0 };

/** As `torch.save` writes it; another content for another seed. */
export function torchFile(seed = 1, bytes = 4_096): Buffer {
  return zipOf(torchEntries(Buffer.alloc(bytes, seed)));
}

export function aDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), 'saved-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 20 }));
  return path;
}

/**
 * Mounts a separate file system, which can be full, read-only, or anywhere inside of another one.
 * @param inTheEnd where it is when the test ends; default: where it was mounted
 */
export function mountTmpfs(path: string, options: string, inTheEnd = path): void {
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', path], { stdio: 'pipe' });
  } catch (cause) {
    throw new Error('this test mounts a tmpfs, which takes root (in a container: with CAP_SYS_ADMIN)', {
      cause,
    });
  }
  onTestFinished(() => void execFileSync('umount', ['--lazy', inTheEnd]));
}

export function assignmentFor(
  dir: string,
  spec: Readonly<Record<string, unknown>> = {},
  changes: Partial<Assignment> = {},
): Assignment {
  const task = changes.task ?? aTask;
  const checkpoint = { dir, ...(spec['checkpoint'] as object | undefined) };
  return {
    task,
    spec: decodeJobSpec(JSON.stringify({ name: 'test', command: ['train'], ...spec, checkpoint })),
    nodeCount: 1,
    gpuUuids: [],
    array: null,
    resume: null,
    checkpointJobId: task.jobId,
    user: 'admin',
    lineage: [],
    batchScale: 1,
    lrScale: 1,
    quarantine: [],
    doubted: [],
    proof: '',
    ...changes,
  };
}

/** As the coordinator knows them: by the versions that are there, and another one of those that are not. */
export async function corruptIn(
  root: string,
  ...names: readonly string[]
): Promise<readonly CorruptCheckpoint[]> {
  const { candidates } = await scanCheckpoints(root, { pattern: null });
  const versions = new Map(candidates.map(({ name, version }) => [name, version]));
  return names.map((name) => ({ name, version: versions.get(name) ?? 'another' }));
}

export class WatchingNode {
  readonly sent: CheckpointMessage[] = [];
  readonly warnings: string[] = [];
  /** Verifications that were asked for, and those of them that came to an end. */
  readonly asked: string[] = [];
  readonly verified: string[] = [];
  readonly complete: TaskRef[] = [];
  readonly problems: (DirectoryProblem | null)[] = [];
  readonly watcher: CheckpointWatcher;
  /** What a verification waits for before it begins. */
  mayVerify: (order: VerifierOrder, signal: AbortSignal) => Promise<unknown> = async () => {};
  /** What the storage lets be seen of what is there. */
  seen: (found: Verification) => Verification = (found) => found;
  metrics: Readonly<Record<string, number>> = {};
  /** How far its monotonic clock has been put forward. */
  aheadMs = 0;

  /** Where the node keeps checkpoints of jobs that name no place. */
  readonly ownDirs = aDirectory();

  constructor() {
    const warn = (fields: object, message: string) => {
      this.warnings.push(`${message} ${JSON.stringify(fields)}`);
    };
    this.watcher = new CheckpointWatcher({
      dirs: checkpointDirs(this.ownDirs),
      verify: (order, signal) => this.verify(order, signal),
      metricsAt: () => this.metrics,
      mounts: () => readMounts(),
      nodeName: 'a',
      send: (message) => void this.sent.push(message),
      onProgress: () => {},
      onTrainingComplete: (task) => void this.complete.push(task),
      onProblem: (problem) => void this.problems.push(problem),
      wallMs: () => Date.now(),
      monotonicMs: () => performance.now() + this.aheadMs,
      log: { ...silentLogger, warn, error: warn },
    });
    onTestFinished(() => this.watcher.close());
  }

  /** The task runs, and began a moment ago. */
  watch(assignment: Assignment, startedAtMs = Date.now()): void {
    this.watcher.watch(assignment, startedAtMs);
  }

  /** Prepares the task, which may begin, and runs it. */
  async began(assignment: Assignment): Promise<void> {
    expect(await this.watcher.prepare(assignment)).toBeNull();
    this.watch(assignment);
  }

  /** `step_10 verified`, `step_10 verified after the stop` */
  messages(): readonly string[] {
    return this.sent.map(({ checkpoint: { name, verdict, problem }, afterStop }) =>
      [name, verdict, ...(problem === null ? [] : [problem]), ...(afterStop ? ['after the stop'] : [])].join(
        ' ',
      ),
    );
  }

  async reports(...messages: readonly string[]): Promise<void> {
    await vi.waitFor(() => expect(this.messages()).toEqual(messages));
  }

  private async verify(order: VerifierOrder, signal: AbortSignal): Promise<Verification> {
    this.asked.push(`${order.name} ${order.depth}`);
    await this.mayVerify(order, signal);
    signal.throwIfAborted();
    this.verified.push(`${order.name} ${order.depth}`);
    return this.seen(await verifyCheckpoint(order.root, order.name, { depth: order.depth, signal }));
  }
}

export function indexIn(root: string): CheckpointIndex {
  return JSON.parse(readFileSync(join(root, 'checkpoints_index.json'), 'utf8')) as CheckpointIndex;
}
