import { execFileSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCli } from '../program.ts';
import { aCondition, aJob, aNode, wire } from '../testing/fakeCoordinator.ts';
import { newCall, run, temporaryDir } from '../testing/testContext.ts';

const answers = {
  ListJobs: () => ({
    jobs: [aJob({ id: 'job_aaaaaaaaaaaa', state: 'running' }), aJob()].map(wire.job),
    more: false,
  }),
  ListNodes: () => ({ nodes: [wire.node(aNode())] }),
  GetNode: () => wire.node(aNode({ conditions: [aCondition(), aCondition({ gpuUuid: 'GPU-1' })] })),
};

/** @param words up to the cursor; the last one is being typed */
async function candidates(...words: readonly string[]): Promise<readonly string[]> {
  const { stdout } = await run(['__complete', ...words.map((word) => `:${word}`)], answers);
  return stdout.split('\n').slice(0, -1);
}

test('commands, flags and fixed values complete', async () => {
  expect(await candidates('jo')).toEqual([
    'jobs\tlist jobs, newest first',
    'job\tshow everything about one job',
  ]);
  expect((await candidates('jobs', '--st')).map((line) => line.split('\t')[0])).toEqual(['--state']);
  expect(await candidates('jobs', '--state', 's')).toEqual(['starting', 'stopping', 'succeeded'].sort());
  expect(await candidates('jobs', '-o', '')).toEqual(['table', 'json']);
  expect(await candidates('submit', '--launcher', '')).toEqual(['torchrun', 'env', 'mpi-hostfile']);
  expect(await candidates('submit', '--topology', 'r')).toEqual(['required']);
  expect(await candidates('submit', '--node-loss', '')).toEqual(['requeue', 'hold']);
  expect(await candidates('completion', '')).toEqual(['bash', 'zsh', 'fish']);
  expect(await candidates('store', '')).toEqual(['check', 'accept', 'advance']);
  expect((await candidates('maintenance', '--')).map((line) => line.split('\t')[0])).toContain('--for');
  expect(await candidates('nothing', '')).toEqual([]);
  expect(await candidates('metrics', 'job_0123456789ab', 'gpu_p')).toEqual(['gpu_power_watts\twatts']);
  expect(await candidates('agent', '--gpu-source', 'nv')).toEqual(['nvml', 'nvidia-smi']);
  expect(await candidates('doctor', '--nvidia-smi', '')).toEqual([':files']);
});

test('names and ids come from the cluster', async () => {
  const jobs = [
    'train\tjob_aaaaaaaaaaaa, running',
    'job_aaaaaaaaaaaa\ttrain, running',
    'job_0123456789ab\ttrain, queued',
  ];
  expect(await candidates('logs', '-f', '')).toEqual([
    'rm\tdelete the stored output of a job and free its space',
    ...jobs,
  ]);
  expect(await candidates('logs', '--rank', '1', 'job_0')).toEqual([jobs[2]]);
  expect(await candidates('stop', 'job_aaaaaaaaaaaa', '')).toEqual(jobs);
  expect(await candidates('node', '')).toEqual([
    'add\tmake machines nodes through ssh: copies the release, installs the agent, joins, and examines',
    'drain\tgive no new tasks to a node; with a deadline its jobs save, stop and are rescheduled before it',
    'undrain\tgive new tasks to a drained node again',
    'clear\tclear a condition by hand, once its problem is fixed',
    'confirm-dead\tconfirm that nothing runs on a silent node: its jobs are rescheduled at once',
    'rejoin\tlet another machine with the credential of a node be that node, such as one that was restored',
    'end-orphans\tkill the tasks of a node that the store does not know, as after a restore from a backup',
    'remove\tremove a node: drain it, uninstall Muster where `node add` put it, and revoke its credential',
    'node-1\tonline',
  ]);
  expect(await candidates('node', 'clear', '')).toEqual(['node-1\tonline']);
  expect(await candidates('node', 'confirm-dead', '')).toEqual(['node-1\tonline']);
  expect(await candidates('node', 'clear', 'node-1', 'xid')).toEqual([
    'xid_79\tGPU 0 has fallen off the bus.',
  ]);
  expect(await candidates('node', 'clear', '--g')).toEqual([
    '--gpu\tnumber or UUID of the GPU; required if several GPUs have the condition',
  ]);
  expect(await candidates('token', 'create', '')).toEqual(['node-1\tonline']);
  expect(await candidates('job', 'job_x', '')).toEqual([]);
});

test('files are left to the shell', async () => {
  expect(await candidates('submit', '-f', '')).toEqual([':files']);
  expect(await candidates('submit', '--', 'python', '')).toEqual([':files']);
  expect(await candidates('up', '--data', '')).toEqual([':files']);
});

test('without a coordinator there is nothing to offer and nothing to say', async () => {
  const { context, stdout, stderr } = newCall(null);
  expect(await runCli(['__complete', ':job', ':'], context)).toBe(0);
  expect({ stdout: stdout(), stderr: stderr() }).toEqual({ stdout: '', stderr: '' });
});

test('bash offers what muster offers', async () => {
  const dir = temporaryDir();
  const { stdout: script } = await run(['completion', 'bash']);
  writeFileSync(join(dir, 'completion.bash'), script);
  writeFileSync(join(dir, 'spec.yaml'), '');
  const main = join(import.meta.dirname, '../main.ts');
  writeFileSync(join(dir, 'muster'), `#!/bin/sh\nexec '${process.execPath}' '${main}' "$@"\n`);
  chmodSync(join(dir, 'muster'), 0o755);
  const complete = (...words: readonly string[]) =>
    execFileSync(
      'bash',
      [
        '-c',
        'source completion.bash; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _muster; printf "%s\\n" "${COMPREPLY[@]}"',
        'bash',
        'muster',
        ...words,
      ],
      { cwd: dir, env: { PATH: `${dir}:${process.env['PATH']}`, HOME: dir }, encoding: 'utf8' },
    ).split('\n');
  expect(complete('jobs', '--sta')).toEqual(['--state', '']);
  expect(complete('req')).toEqual(['requeue', '']);
  expect(complete('submit', '-f', 'sp')).toEqual(['spec.yaml', '']);
});
