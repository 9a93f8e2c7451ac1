import { appendFileSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { JobId, TaskRef } from '@muster/common/ids';
import { decodeJobSpec } from '@muster/common/spec/serialize';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Assignment } from '../taskFacts/assignment.ts';
import { TorchrunWatch } from './torchrunWatch.ts';

const task: TaskRef = { jobId: 'job_0123456789ab' as JobId, attempt: 1, nodeRank: 0 };
const death =
  'ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: 1) local_rank: 0 (pid: 67) of binary: /usr/bin/python3\n';

let directory: string;
let output: string;
let running: { task: TaskRef; assignment: Assignment | null }[];
let ended: TaskRef[];
let torchruns: TorchrunWatch;

function assign(spec: Record<string, unknown> = {}, nodeCount = 2): void {
  const whole = decodeJobSpec(JSON.stringify({ name: 'train', command: ['torchrun', 'train.py'], ...spec }));
  const resumption = {
    resume: null,
    checkpointJobId: task.jobId,
    user: 'admin',
    lineage: [],
    batchScale: 1,
    lrScale: 1,
    quarantine: [],
    doubted: [],
    proof: '',
  };
  running = [
    { task, assignment: { task, spec: whole, nodeCount, gpuUuids: [], array: null, ...resumption } },
  ];
}

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-deaths-'));
  output = join(directory, 'output.log');
  writeFileSync(output, 'step 1\n');
  ended = [];
  assign();
  torchruns = new TorchrunWatch({
    running: () => running,
    outputPathOf: () => output,
    end: async (each) => void ended.push(each),
    log: { info() {}, debug() {}, warn() {}, error() {} },
  });
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

test('a torchrun that says that its worker failed is ended, once', () => {
  torchruns.look();
  expect(ended).toEqual([]);
  appendFileSync(output, death);
  torchruns.look();
  appendFileSync(output, death);
  torchruns.look();
  expect(ended).toEqual([task]);
});

test('a line that came in two pieces is one', () => {
  appendFileSync(output, death.slice(0, 70));
  torchruns.look();
  appendFileSync(output, death.slice(70));
  torchruns.look();
  expect(ended).toEqual([task]);
});

test('the line is seen behind any amount of output', () => {
  appendFileSync(output, `${'x'.repeat(1_000_000)}\n${death}`);
  torchruns.look();
  expect(ended).toEqual([task]);
});

test.each<[string, Record<string, unknown>, number]>([
  ['that is alone ends by itself', {}, 1],
  ['that restarts its workers goes on', { args: ['--max-restarts=3'] }, 2],
  ['that restarts its workers by its environment goes on', { env: { PET_MAX_RESTARTS: '3' } }, 2],
  ['in the output of another launcher means nothing', { launcher: 'env' }, 2],
  ['in a script may be started again', { command: 'torchrun train.py || torchrun train.py' }, 2],
  ['in a program may be started again', { command: ['./train.sh'] }, 2],
])('a torchrun %s', (_, spec, nodeCount) => {
  assign(spec, nodeCount);
  appendFileSync(output, death);
  torchruns.look();
  expect(ended).toEqual([]);
});

test.each<[string | string[]]>([
  ['torchrun train.py --epochs 3'],
  [['/opt/venv/bin/torchrun', '--nproc-per-node=2', 'train.py']],
  [['python3', '-m', 'torch.distributed.run', 'train.py']],
])('%j is torchrun', (command) => {
  assign({ command });
  appendFileSync(output, death);
  torchruns.look();
  expect(ended).toEqual([task]);
});

test('a task without a record, a file that is gone and one that is none are borne', () => {
  running = [{ task, assignment: null }];
  torchruns.look();
  running = [];
  torchruns.look();
  assign();
  rmSync(output);
  torchruns.look();
  symlinkSync('/etc/passwd', output);
  torchruns.look();
  expect(ended).toEqual([]);
});
