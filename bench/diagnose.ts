/**
 * How fast a log is diagnosed, on one core: `node bench/diagnose.ts [MB per log] [runs]`. The logs are generated: lines of
 * several frameworks, colours, prefixes of ranks, progress bars that end in carriage returns, and program talk in between,
 * as in real ones. The floor in the same run is finding the line ends and decoding the bytes, which any reader must do.
 */
import { LogDiagnosis } from '@muster/diagnosis/diagnose';
import { FailureReader } from '@muster/diagnosis/failure/failureReader';
import { LineReader } from '@muster/diagnosis/lines/lineReader';
import { quietMachine, report, reportMachine, summary } from './support.ts';

const megabytes = Number(process.argv[2] ?? 64);
const runs = Number(process.argv[3] ?? 7);
const chunkBytes = 256 * 1024;

type MakeLine = (step: number) => string;

const escape = String.fromCharCode(27);
const loss = (step: number) => 2 + 8 / (1 + step / 500);

const talk: readonly MakeLine[] = [
  (step) => `2026-01-05 10:00:00,123 - data - INFO - shard ${step % 97} of 97 is open, 0 errors so far\n`,
  (step) =>
    `[rank${step % 8}]: node-1:${4000 + (step % 8)}:4242 [${step % 8}] NCCL INFO Channel 02/24 : 0 1 2 3 4 5 6 7\n`,
  () =>
    '/opt/venv/lib/python3.11/site-packages/torch/utils/checkpoint.py:31: UserWarning: None of the inputs have grad\n',
  (step) =>
    `loading ${'layer.'.repeat(6)}${step % 48}.attention.weight torch.Size([4096, 4096]) torch.bfloat16\n`,
];

const logs: Readonly<Record<string, readonly MakeLine[]>> = {
  'one line of metrics': [
    (step) => `iter ${step}: loss ${loss(step).toFixed(4)}, time 440.71ms, mfu 48.31%\n`,
  ],
  'metrics among talk': [
    ...talk,
    (step) =>
      `[rank0]:${escape}[32m[titan] 2026-01-05 10:00:00,1 - root - INFO - step: ${step}  loss: ${loss(step).toFixed(5)}  ` +
      `grad_norm:  0.4118  memory: 61.20GiB(77.31%)  tps: 7,034  tflops: 402.19  mfu: 40.67%${escape}[39m\n`,
    ...talk,
  ],
  'progress bars': [
    (step) => `\r ${step % 100}%|${'█'.repeat(20)}     | ${step}/900000 [3:03:39<6:06:20, 19.11s/it]`,
    (step) =>
      `\n{'loss': ${loss(step).toFixed(4)}, 'grad_norm': 0.97, 'learning_rate': 4.17e-05, 'epoch': 0.16}\n`,
  ],
  'tracebacks only': [
    () => 'Traceback (most recent call last):\n',
    (step) => `  File "/srv/train.py", line ${step % 400}, in step\n    loss = model(batch).loss\n`,
    (step) => `RuntimeError: CUDA error: number ${step} that no rule knows\n`,
  ],
  talk,
};

function generate(makeLines: readonly MakeLine[]): Buffer {
  const lines: string[] = [];
  for (let step = 0, bytes = 0; bytes < megabytes * 1e6; step += 1) {
    for (const makeLine of makeLines) {
      const line = makeLine(step);
      lines.push(line);
      bytes += Buffer.byteLength(line);
    }
  }
  return Buffer.from(lines.join(''));
}

function inChunks(log: Buffer, feed: (bytes: Buffer) => void): void {
  for (let from = 0; from < log.length; from += chunkBytes) feed(log.subarray(from, from + chunkBytes));
}

/** @returns MB/s of each run, without the first, in which everything is compiled */
function measure(log: Buffer, read: (log: Buffer) => void): readonly number[] {
  const rates: number[] = [];
  for (let run = 0; run <= runs; run += 1) {
    const startedAtMs = performance.now();
    read(log);
    if (run > 0) rates.push(log.length / 1e3 / (performance.now() - startedAtMs));
  }
  return rates;
}

function floor(log: Buffer): void {
  let lineEnds = 0;
  inChunks(log, (bytes) => {
    const text = bytes.toString('utf8');
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lineEnds += 1;
  });
  if (lineEnds === 0) throw new Error('a log without lines was generated');
}

function linesAlone(log: Buffer): void {
  const reader = new LineReader(() => {});
  inChunks(log, (bytes) => reader.feed(bytes));
  reader.end();
}

function failureAlone(log: Buffer): void {
  const failure = new FailureReader();
  const reader = new LineReader((line) => failure.line(line));
  inChunks(log, (bytes) => reader.feed(bytes));
  reader.end();
}

function whole(log: Buffer): void {
  const diagnosis = new LogDiagnosis();
  inChunks(log, (bytes) => diagnosis.feed(bytes));
  diagnosis.end();
  const { cause } = diagnosis.result();
  if (cause !== null && cause !== 'python_exception')
    throw new Error(`a healthy log was diagnosed as ${cause}`);
}

reportMachine();
report('busy before the start', { percent: await quietMachine() });
for (const [name, makeLines] of Object.entries(logs)) {
  const log = generate(makeLines);
  const size = Math.round(log.length / 1e6);
  report(`${name}: floor, line ends and decoding`, { megabytes: size, mbPerS: summary(measure(log, floor)) });
  report(`${name}: lines`, { megabytes: size, mbPerS: summary(measure(log, linesAlone)) });
  report(`${name}: lines and failures`, { megabytes: size, mbPerS: summary(measure(log, failureAlone)) });
  report(`${name}: the whole diagnosis`, {
    megabytes: size,
    mbPerS: summary(measure(log, whole)),
    target: 'p50 >= 50',
  });
}
