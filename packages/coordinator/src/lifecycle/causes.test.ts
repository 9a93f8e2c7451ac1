/** From the end of a task to a cause: proof before words, words before the exit, and never a guess. */
import { causeFacts } from '@muster/common/causeFacts';
import type { TaskFailure } from '@muster/common/gangs';
import type { CauseKind } from '@muster/common/spec/causes';
import type { TaskEnd } from '@muster/common/views';
import { describe, expect, it, test } from 'vitest';
import { aFailure, anExit, aTask, someMs } from '../modelFixture.ts';
import { aGang, crash } from '../storyFixture.ts';
import { causeOfEnd, endedWell } from './causes.ts';

const failed = (failure: Partial<TaskFailure> = {}, fields: Partial<TaskEnd> = {}) =>
  anExit({ exitCode: 1, failure: aFailure(failure), ...fields });
const killed = { exitCode: null, signal: 'SIGKILL' } as const;
const xid79 = { text: 'NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus', gpuUuid: 'GPU-a' };

const endOf = (exit: TaskEnd, gpuFault: Parameters<typeof causeOfEnd>[1] = null) =>
  causeOfEnd(aTask(0, { state: 'ended', exit }), gpuFault);

describe('a cause', () => {
  it.each<[string, TaskEnd, CauseKind, string, string | null]>([
    [
      'the output and its rank',
      failed({ rank: 5, message: 'RuntimeError: x' }),
      'exit_code',
      'rank 5 on node-1 exited with code 1: RuntimeError: x',
      'RuntimeError: x',
    ],
    [
      'the output, of a rank that nobody knows',
      failed({ message: 'RuntimeError: x' }),
      'exit_code',
      'rank 0 on node-1 exited with code 1: RuntimeError: x',
      'RuntimeError: x',
    ],
    [
      'the exit alone',
      failed({ source: 'exit', message: 'exited with code 1' }),
      'exit_code',
      'rank 0 on node-1 exited with code 1',
      'exit code 1',
    ],
    [
      'outputs that could not be kept, although the program ended well',
      anExit({
        exitCode: 0,
        failure: aFailure({ source: 'artifacts', kind: 'artifact_refused', message: 'output x: no bucket' }),
      }),
      'artifact_refused',
      'rank 0 on node-1 ended with 0, and its outputs are not kept: output x: no bucket',
      null,
    ],
    ['the signal alone', anExit(killed), 'exit_code', 'rank 0 on node-1 was ended by SIGKILL', 'SIGKILL'],
    [
      'what its node reads in the output',
      failed({ kind: 'cuda_oom', message: 'torch.OutOfMemoryError: CUDA out of memory' }),
      'cuda_oom',
      'rank 0 on node-1 exited with code 1: torch.OutOfMemoryError: CUDA out of memory',
      'torch.OutOfMemoryError: CUDA out of memory',
    ],
    [
      'what its node knows of the exit',
      failed({ source: 'exit', kind: 'command_not_found', message: 'no such file' }, { exitCode: 127 }),
      'command_not_found',
      'rank 0 on node-1 exited with code 127',
      'exit code 127',
    ],
    [
      'the log of the kernel',
      failed(
        {
          source: 'kernel',
          kind: 'host_oom',
          message: 'Out of memory: Killed process 7 (python3) total-vm:1kB',
        },
        { ...killed, oomKilled: true },
      ),
      'host_oom',
      'rank 0 on node-1 was killed by the kernel because memory ran out: Out of memory: Killed process 7 (python3) total-vm:1kB',
      'Out of memory: Killed process 7 (python3) total-vm:1kB',
    ],
    [
      'the kernel, whatever the output says',
      failed({ kind: 'python_exception', message: 'DataLoader worker died' }, { ...killed, oomKilled: true }),
      'host_oom',
      'rank 0 on node-1 was killed by the kernel because memory ran out: DataLoader worker died',
      'killed by the kernel because memory ran out',
    ],
    [
      'the output where nobody saw the end',
      failed({ kind: 'nan_loss', message: 'loss nan' }, { exitCode: null, statusLost: true }),
      'nan_loss',
      'rank 0 on node-1 has ended with an unknown exit status: loss nan',
      'loss nan',
    ],
    [
      'nothing where there is nothing',
      anExit({ exitCode: null, statusLost: true }),
      'unknown',
      'rank 0 on node-1 has ended with an unknown exit status',
      null,
    ],
  ])('tells by %s', (_, exit, kind, message, text) => {
    const cause = endOf(exit);
    expect(cause).toMatchObject({
      kind,
      message,
      nodeRank: 0,
      node: 'node-1',
      blame: causeFacts[kind].blame,
    });
    expect(cause.evidence?.text ?? null).toBe(text);
  });

  test('has the line and the rank of its evidence, and who its node blames', () => {
    const exit = {
      kind: 'cuda_oom',
      blame: 'platform',
      line: 812,
      rank: 3,
      message: 'out of memory',
    } as const;
    expect(endOf(failed(exit))).toMatchObject({
      blame: 'platform',
      evidence: { line: 812, text: 'out of memory', rank: 3 },
    });
  });

  test('blames nobody of the job for a lease that ran out', () => {
    const exit = anExit({ ...killed, failure: aFailure({ source: 'lease', message: 'killed' }) });
    expect(endOf(exit)).toMatchObject({ kind: 'node_lost', blame: 'node' });
  });
});

describe('a fault of the GPU', () => {
  it.each<[string, Partial<TaskFailure>, CauseKind]>([
    ['an error of the program that follows from it', { kind: 'cuda_illegal_access' }, 'gpu_fault'],
    ['what other ranks say of the network', { kind: 'nccl_error' }, 'gpu_fault'],
    ['nothing that is known', {}, 'gpu_fault'],
    ['a word for it that says more', { kind: 'gpu_hw_ecc' }, 'gpu_hw_ecc'],
  ])('outranks %s', (_, failure, kind) => {
    const cause = endOf(failed({ rank: 2, line: 5, ...failure }), xid79);
    expect(cause).toMatchObject({ kind, blame: 'gpu', nodeRank: 0, node: 'node-1' });
    expect(cause.evidence).toEqual({ line: null, text: xid79.text, rank: 2 });
    expect(cause.message).toContain('GPU-a');
  });

  it('without which an illegal access stays the doing of the job', () => {
    expect(endOf(failed({ kind: 'cuda_illegal_access' }))).toMatchObject({ blame: 'job' });
  });

  it('is the cause of its gang, though another rank was reported first and failed earlier', () => {
    const story = aGang()
      .allRunning()
      .ended(0, failed({ kind: 'nccl_error' }), 1, someMs);
    const ended = { kind: 'taskEnded', attempt: 1, nodeRank: 1, failedAtMs: someMs + 500 } as const;
    story.on({ ...ended, exit: anExit(killed), gpuFault: xid79 });

    expect(story.job.state).toMatchObject({
      kind: 'queued',
      lastCause: { kind: 'gpu_fault', node: 'node-2' },
    });
    expect(story.excludedNodes).toEqual(['node-2']);
  });

  it('changes nothing about an end that was good, or asked for', () => {
    const ended = { kind: 'taskEnded', attempt: 1, failedAtMs: null, gpuFault: xid79 } as const;
    const good = aGang().allRunning().ended(0);
    expect(good.on({ ...ended, nodeRank: 1, exit: anExit() }).job.state.kind).toBe('succeeded');

    const wanted = aGang().allRunning().preempted().ended(0);
    expect(wanted.on({ ...ended, nodeRank: 1, exit: crash }).job.state).toMatchObject({
      kind: 'queued',
      lastCause: { kind: 'preempted' },
    });
  });
});

test('an end is good when the program has ended with 0, and its outputs are kept', () => {
  const good = anExit({ exitCode: 0 });
  expect(endedWell(good)).toBe(true);
  expect(endedWell({ ...good, failure: aFailure({ source: 'artifacts' }) })).toBe(false);
  expect(endedWell(anExit({ exitCode: 1 }))).toBe(false);
});
