/**
 * How fast progress is read from the output of training programs: lines, metrics and signs together, on one core, beside a
 * mere search for the line ends of the same bytes in the same run; and what a line of 50 MB and bytes that are no text cost
 * in memory.
 *
 *     node bench/progress.ts [megabytes] [rounds]
 *
 * The generated log is as logs of many ranks are: of 20 lines one has metrics or a progress bar. A second one consists of
 * metrics alone. Megabytes are 10^6 bytes, and seconds are those of the CPU. Best of all rounds: other programs only make
 * it slower.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { LineReader } from '@muster/diagnosis/lines/lineReader';
import { ProgressReader } from '@muster/diagnosis/progress/progressReader';
import { TrendWatch } from '@muster/diagnosis/signs/trend';
import { quietMachine, report, reportMachine, rounded } from './support.ts';

const self = fileURLToPath(import.meta.url);
/** As pipes and files are read. */
const chunkBytes = 64 * 1024;

// ---- What is read

const chatter = [
  'INFO 2025-03-04 05:06:07,890 worker 3 has read shard 00017 of 00512 from /data/shards in 1.23 s',
  '[rank3]:   File "/opt/venv/lib/python3.12/site-packages/torch/nn/modules/module.py", line 1700, in forward',
  'node-b:2041:2110 [2] NCCL INFO Channel 03/0 : 11[3] -> 4[4] [send] via NET/IB/2/GDRDMA',
  '[2025-03-04 05:06:07,890] [WARNING] [accelerator.py:162:get_accelerator] no accelerator was named: cuda is used',
  '[default5]:W0304 05:06:07.890000 512 torch/distributed/run.py:792] OMP_NUM_THREADS is not set',
  'loading tokenizer.json',
  '',
  'the next step may take a while',
  '  warnings.warn("the loader has no workers of its own")',
  '\x1b[36mdata\x1b[0m {"level": "info", "queue": 17, "waitedMs": 12}',
];

/** One line of metrics of each kind. */
const metrics = [
  (step: number, loss: string) => `iter ${step}: loss ${loss}, time 512.34ms, mfu 31.07%`,
  (step: number, loss: string) =>
    ` 33%|██████▌             | ${step}/900000 [3:03:39<6:06:20,  2.11s/it]\r{'loss': ${loss}, 'grad_norm': 0.97, 'learning_rate': 4.8e-05, 'epoch': 0.08}`,
  (step: number, loss: string) =>
    `[rank0]:[titan] 2025-03-04 05:06:07,890 - root - INFO - \x1b[31mstep: ${step}  \x1b[32mloss:  ${loss}` +
    '  \x1b[33mgrad_norm:  1.2500  memory: 30.00GiB(40.00%)  tps: 11,023\x1b[0m',
  (step: number, loss: string) =>
    `[default7]: iteration ${step}/ 900000 | consumed samples: 1024 | elapsed time per iteration (ms): 812.6` +
    ` | learning rate: 2.5E-05 | lm loss: ${loss} | loss scale: 1.0 | grad norm: 3.125` +
    ' | number of skipped iterations:   0 | number of nan iterations:   0 |',
  (step: number, loss: string) =>
    `{"step": ${step}, "loss": ${loss}, "lr": 0.001, "tokens_per_second": 9000}`,
];

/** @param every one line of so many has metrics */
function logOf(bytes: number, every: number): Buffer {
  const lines: string[] = [];
  for (let size = 0, number = 0; size < bytes; number += 1) {
    const step = Math.floor(number / every);
    const line =
      number % every === 0
        ? (metrics[step % metrics.length]?.(step, (2 + (step % 17) / 100).toFixed(4)) ?? '')
        : (chatter[number % chatter.length] ?? '');
    lines.push(line);
    size += line.length + 1;
  }
  return Buffer.from(`${lines.join('\n')}\n`);
}

// ---- Who reads it

function lineEnds(log: Buffer): number {
  let ends = 0;
  for (let at = log.indexOf(10); at !== -1; at = log.indexOf(10, at + 1)) ends += 1;
  return ends;
}

/** What an agent does with the output of a task. */
class Chain {
  readonly progress = new ProgressReader({ onSave: () => {} });
  private readonly trend = new TrendWatch();
  private readonly lines = new LineReader((line) => {
    const row = this.progress.line(line);
    if (row === null) this.trend.line(line);
    else this.trend.row(row);
  });

  feed(bytes: Uint8Array): void {
    this.lines.feed(bytes);
  }

  end(): number {
    this.lines.end();
    return this.progress.rows;
  }
}

function readWhole(log: Buffer): number {
  const chain = new Chain();
  for (let from = 0; from < log.length; from += chunkBytes) chain.feed(log.subarray(from, from + chunkBytes));
  return chain.end();
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

function megabytesPerSecond(log: Buffer, rounds: number, read: (log: Buffer) => number): number {
  let best = 0;
  for (let round = 0; round < rounds; round += 1) {
    const beforeMs = cpuMs();
    read(log);
    best = Math.max(best, log.length / 1_000 / (cpuMs() - beforeMs));
  }
  return rounded(best);
}

// ---- Memory

/** One chunk of each, which is read again and again into the same place, as files are. */
const hostile = {
  'one line of 50 MB': () => Buffer.alloc(chunkBytes, 'x'),
  'one bar of 50 MB that is redrawn': () =>
    Buffer.alloc(chunkBytes, '\r 33% 300/900 [00:10<01:00, 2.00s/it]'),
  // Line ends, control bytes and parts of characters, as they come in data.
  '50 MB of bytes that are no text': () =>
    Buffer.from(Uint32Array.from({ length: chunkBytes / 4 }, (_, at) => Math.imul(at, 2_654_435_761)).buffer),
} as const;
type Hostile = keyof typeof hostile;

/** Peak of the resident memory of a process that reads it, before and after, MiB: VmHWM of proc_pid_status(5). */
async function beReader(kind: Hostile): Promise<void> {
  const chain = new Chain();
  // What the first call compiles and allocates is no cost of the bytes.
  chain.feed(logOf(200_000, 20));
  const peakBeforeMib = process.resourceUsage().maxRSS / 1024;
  const beforeMs = cpuMs();
  const chunk = hostile[kind]();
  for (let fed = 0; fed < 50e6; fed += chunk.length) chain.feed(chunk);
  const rows = chain.end();
  const ms = rounded(cpuMs() - beforeMs);
  const peakMib = process.resourceUsage().maxRSS / 1024;
  process.send?.({ cpuMs: ms, rows, peakMib: rounded(peakMib), addedMib: rounded(peakMib - peakBeforeMib) });
}

async function main(): Promise<void> {
  const megabytes = Number(process.argv[2] ?? 50);
  const rounds = Number(process.argv[3] ?? 5);
  reportMachine();
  const busyPercent = await quietMachine();
  for (const [figure, every] of [
    ['mixed log', 20],
    ['metrics alone', 1],
  ] as const) {
    const log = logOf(megabytes * 1e6, every);
    report(figure, {
      busyPercent,
      megabytes,
      lines: lineEnds(log),
      rows: readWhole(log),
      floorMbPerS: megabytesPerSecond(log, rounds, lineEnds),
      mbPerS: megabytesPerSecond(log, rounds, readWhole),
    });
  }
  for (const kind of Object.keys(hostile)) {
    const child = fork(self, [kind], { env: { ...process.env, MUSTER_BENCH_ROLE: 'reader' } });
    const [fields] = (await once(child, 'message')) as [Record<string, unknown>];
    report('memory', { of: kind, ...fields });
    child.disconnect();
  }
}

if (process.env['MUSTER_BENCH_ROLE'] === 'reader') await beReader(process.argv[2] as Hostile);
else await main();
