import { expect, test } from 'vitest';
import { LogDiagnosis } from './diagnose.ts';
import type { ProcessEnd } from './failure/judge.ts';

function diagnose(output: string | Uint8Array, end: ProcessEnd | null = null, pieceBytes = 1 << 20) {
  const bytes = typeof output === 'string' ? Buffer.from(output) : output;
  const log = new LogDiagnosis();
  for (let from = 0; from < bytes.length; from += pieceBytes)
    log.feed(bytes.subarray(from, from + pieceBytes));
  log.end();
  return log.result(end);
}

const steps = (from: number, to: number, loss = (step: number) => 4 - step / 100) =>
  Array.from({ length: to - from }, (_, index) => {
    const step = from + index;
    return `iter ${step}: loss ${loss(step).toFixed(4)}, time 440.71ms, mfu 48.31%\n`;
  }).join('');
const failure =
  'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\nValueError: bad shape\n';

test('a failure with its evidence, and the metrics before it', () => {
  expect(diagnose(steps(0, 3) + failure)).toMatchObject({
    state: 'failed',
    cause: 'python_exception',
    blame: 'job',
    retry: 'no',
    evidence: { line: 6, text: 'ValueError: bad shape', rank: null },
    framework: 'nanogpt',
    metrics: { rows: 3, first: { step: 0, loss: 4 }, last: { step: 2, loss: 3.98 } },
  });
});

test('nothing is made of nothing', () => {
  expect(diagnose('')).toEqual({
    state: 'running',
    cause: null,
    blame: null,
    evidence: null,
    retry: null,
    advice: null,
    framework: null,
    metrics: { rows: 0, first: null, last: null },
  });
});

test('where the pieces of the output are cut makes no difference', () => {
  const output = `${steps(0, 20)}\rwörds\n${failure}`;
  expect(diagnose(output, null, 7)).toEqual(diagnose(output));
});

test('a loss that stays no number is the cause, of whatever ends the program after it', () => {
  const spoilt = steps(0, 5) + steps(5, 9, () => Number.NaN).replaceAll('NaN', 'nan');
  const found = { cause: 'nan_loss', blame: 'job', retry: 'after_change', evidence: { line: 6 } };
  expect(diagnose(spoilt)).toMatchObject({ ...found, state: 'running' });
  expect(diagnose(spoilt + failure)).toMatchObject({ ...found, state: 'failed' });
  expect(diagnose(`${spoilt}RuntimeError: CUDA error: uncorrectable ECC error encountered\n`).cause).toBe(
    'gpu_hw_ecc',
  );
  const before = `[rank1]: ValueError: bad shape\n${spoilt.slice(spoilt.lastIndexOf('iter'))}`;
  expect(diagnose(before).cause, 'the failure was there before').toBe('python_exception');
});

test('a loss that was no number once and came back is no cause', () => {
  const output = `${steps(0, 5)}iter 5: loss nan, time 440.71ms, mfu 48.31%\n${steps(6, 30)}`;
  expect(diagnose(output).cause).toBeNull();
});

test('a loss of 0 beside a norm that is no number is no loss that came back', () => {
  const rows = Array.from({ length: 24 }, (_, row) => {
    const metrics = row < 8 ? "'loss': 2.9, 'grad_norm': 0.9" : "'loss': 0.0, 'grad_norm': nan";
    return `{${metrics}, 'learning_rate': 1e-05, 'epoch': ${row / 10}}\n`;
  });
  expect(diagnose(rows.join(''))).toMatchObject({ cause: 'nan_loss', evidence: { line: 9 } });
});

test('a good line or two after trouble do not end it, however many there were before', () => {
  const output = `${steps(0, 12)}Current loss scale already at minimum\n${steps(12, 13)}`;
  expect(diagnose(output).cause).toBe('loss_scale_exhausted');
});

test('a jump of the loss alone is worth an alert; a failure stands above it', () => {
  const spike = steps(0, 60, () => 2.5) + steps(60, 61, () => 9) + steps(61, 80, () => 2.5);
  expect(diagnose(spike)).toMatchObject({
    state: 'running',
    cause: 'loss_spike',
    retry: 'none',
    advice: null,
    evidence: { line: 61 },
  });
  expect(diagnose(spike + failure).cause).toBe('python_exception');
});

const healthy: Readonly<Record<string, string>> = {
  'names and settings that mention trouble': `
config: {"nan_check": true, "on_error": "retry", "timeout": 1800, "oom_retry": true}
model: NaNoNet, loss: focal_error, metric: mean_absolute_error
NCCL_TIMEOUT=1800 TORCH_NCCL_ASYNC_ERROR_HANDLING=1 nccl timeout 0:30:00
mean_absolute_error: 0.12, error rate: 3.1%, word error: 4.0
0 errors, 0 warnings, killed: 0, signal to noise 12 dB
`,
  'warnings that were dealt with': `
/opt/venv/lib/python3.11/site-packages/torch/utils/checkpoint.py:31: UserWarning: None of the inputs have requires_grad=True
WARNING:root:could not import apex: ImportError: No module named 'apex'; using torch
[W socket.cpp:601] [c10d] The client socket has failed to connect to [localhost]:29500 (errno: 99 - Cannot assign requested address).
[W socket.cpp:464] [c10d] The server socket cannot be initialized on [::]:29500 (errno: 97 - Address family not supported by protocol).
WARNING urllib3.connectionpool: Retrying after connection broken by 'ConnectionResetError(104, 'Connection reset by peer')': /data
[2026-01-05 10:00:00,000] [WARNING] [axolotl.batch:31] [PID:9] CUDA out of memory. Tried to allocate 2.00 GiB; trying half the batch
node-1:71:99 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>
node-1:71:99 [0] NCCL WARN NET/IB : Unable to open device mlx5_9
FutureWarning: You are using \`torch.load\` with \`weights_only=False\`; see UnpicklingError in the manual
`,
  'a sample that could not be read': `
ERROR:data:sample 17 is broken
${failure}INFO:data:sample 17 is skipped
${steps(10, 12)}`,
  'what Python says at its end': `
Exception ignored in: <function Client.__del__ at 0x7f00aa>
Traceback (most recent call last):
  File "/opt/venv/lib/python3.11/client.py", line 9, in __del__
AttributeError: 'NoneType' object has no attribute 'close'
/usr/lib/python3.11/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: There appear to be 1 leaked semaphore objects
`,
  'what nvidia-smi prints': `
| N/A   34C    P0    61W / 400W |      3MiB / 81920MiB |      0%      Default |
    Uncorrectable ECC Errors : 0
    Xid errors: none
`,
};

test.each(Object.keys(healthy))('all is well with %s', (name) => {
  const output = `${steps(0, 10)}${healthy[name]}`;
  expect(diagnose(output)).toMatchObject({ state: 'running', cause: null });
  expect(diagnose(`${output}${steps(12, 30)}Training completed.\n`)).toMatchObject({
    state: 'completed',
    cause: null,
  });
});

test('a line of 50 MB and binary garbage are borne in bounded memory', () => {
  const log = new LogDiagnosis();
  const chunk = Buffer.alloc(1 << 20, 'CUDA out of memory, Traceback Error 28 ');
  for (let fed = 0; fed < 50; fed += 1) log.feed(chunk);
  const garbage = Buffer.from(
    Array.from({ length: 1 << 18 }, (_, index) => (index * 7919 + (index >> 7)) & 0xff),
  );
  for (let fed = 0; fed < 8; fed += 1) log.feed(garbage);
  log.feed(Buffer.from(`\n${failure}`));
  log.end();
  expect(log.result()).toMatchObject({
    cause: 'python_exception',
    evidence: { text: 'ValueError: bad shape' },
  });
});
