/** A run that continues gets no cause of a failure, whatever words its log contains: a wrong cause is worse than none. */
import { describe, expect, test } from 'vitest';
import { LogDiagnosis } from './diagnose.ts';
import { linesOf } from './lines/lineReader.ts';
import { ProgressReader } from './progress/progressReader.ts';
import { TrendWatch } from './signs/trend.ts';
import { healthyTalk } from './testing/healthyTalk.ts';

type Row = (step: number, loss: string) => string;

/** One per format of metrics: the talk may stand beside any. */
const rows: readonly Row[] = [
  (step, loss) => `iter ${step}: loss ${loss}, time 440.71ms, mfu 48.31%`,
  (step, loss) => `{'loss': ${loss}, 'grad_norm': 0.97, 'learning_rate': 4.1e-05, 'epoch': ${step / 100}}`,
  (step, loss) => `{"step": ${step}, "loss": ${loss}, "lr": 0.001}`,
  (step, loss) =>
    `[rank0]:[titan] 2025-03-04 05:06:07 - root - INFO - step: ${step}  loss:  ${loss}  memory: 30.00GiB(40.00%)`,
  (step, loss) =>
    ` iteration ${step}/ 900000 | consumed samples: 1024 | lm loss: ${loss} | loss scale: 1.0 |`,
];

const rowsOf = (row: Row, from: number, to: number) =>
  Array.from(
    { length: to - from },
    (_, index) => `${row(from + index, (4 - (from + index) / 100).toFixed(4))}\n`,
  ).join('');

function diagnose(output: string) {
  const log = new LogDiagnosis();
  log.feed(Buffer.from(output));
  log.end();
  return log.result();
}

function signsIn(output: string) {
  const [reader, trend] = [new ProgressReader(), new TrendWatch()];
  return linesOf(output).flatMap((line) => {
    const row = reader.line(line);
    return row === null ? trend.line(line) : trend.row(row);
  });
}

test('there are a hundred of them, and each is another one', () => {
  expect(new Set(healthyTalk).size).toBe(healthyTalk.length);
  expect(healthyTalk.length).toBeGreaterThanOrEqual(100);
});

describe.each(
  healthyTalk.map((talk, index) => [talk.split('\n')[0]?.slice(0, 70) ?? '', talk, index] as const),
)('%s', (_, talk, index) => {
  const row = rows[index % rows.length] ?? rows[0];
  if (row === undefined) throw new Error('there are rows');
  const healthy = { state: 'running', cause: null, evidence: null };

  test('in the middle of a run', () => {
    const output = `${rowsOf(row, 0, 10)}${talk}\n${rowsOf(row, 10, 20)}`;
    expect(diagnose(output)).toMatchObject(healthy);
    expect(signsIn(output)).toEqual([]);
  });

  test('as the newest lines of a run, and as all there is', () => {
    for (const output of [`${rowsOf(row, 0, 10)}${talk}\n`, `${talk}\n`])
      expect(diagnose(output)).toMatchObject(healthy);
  });

  test('on every rank, as launchers print it, and after the end of the training', () => {
    const ranked = (rank: number) => talk.replaceAll(/^/gm, `[rank${rank}]: `);
    const output = `${rowsOf((...of) => `[rank0]: ${row(...of)}`, 0, 10)}${ranked(0)}\n${ranked(3)}\n`;
    expect(diagnose(output)).toMatchObject(healthy);
    const done = `${rowsOf(row, 0, 10)}Training completed.\n${talk}\n`;
    expect(diagnose(done)).toMatchObject({ state: 'completed', cause: null });
  });
});

test('a failed work request of RDMA that the run survives is no end of it', () => {
  // libmlx5 writes this of a request that has failed, and never of one that was only flushed: anyone who has posted it may do
  // so again on another path.
  const words = '00000000 00000000 00000000 00000000\n'.repeat(3);
  const talk = `mlx5: node-1: got completion with error:\n${words}00000000 00008716 0a001f8e 000027d2\n`;
  const row = rows[0] ?? (() => '');
  const output = `${rowsOf(row, 0, 10)}${talk}${rowsOf(row, 10, 20)}`;
  expect(diagnose(output)).toMatchObject({ state: 'running', cause: null, evidence: null });
  expect(diagnose(`${output}Training completed.\n`)).toMatchObject({ state: 'completed', cause: null });
  expect(diagnose(`${rowsOf(row, 0, 10)}${talk}`)).toMatchObject({ cause: 'nccl_error', blame: 'network' });
});
