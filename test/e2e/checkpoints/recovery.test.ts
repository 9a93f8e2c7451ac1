/** What becomes of a job whose attempt has failed: by the cause, and from what it had saved. */
import { existsSync, readdirSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, type Spec, startCluster } from '../../support/cluster.ts';
import { repositoryDir } from '../../support/command.ts';
import { tempDir } from '../../support/services.ts';
import { waitForVerdict } from './waitForVerdict.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ nodes: 2, gpus: 2 });
});

const quick = { initial: '100ms', max: '500ms' };

/**
 * A program that says where it begins and saves `step-N.json` for each step of `plan`, a list of JavaScript expressions that
 * may throw; `attempt` is the number of the attempt, `from` the step it resumed from, 0 at the beginning. `saved` also waits until
 * the agent has read the checkpoint, which its index shows: the end of an attempt waits for that some seconds at most.
 */
function program(plan: string): string[] {
  const text = `
    const { existsSync, readFileSync, renameSync, writeFileSync } = require('node:fs');
    const { join } = require('node:path');
    const { MUSTER_CHECKPOINT_DIR: dir, MUSTER_RESUME_FROM: resume, MUSTER_ATTEMPT, MUSTER_BATCH_SCALE, MUSTER_LR_SCALE } = process.env;
    const attempt = Number(MUSTER_ATTEMPT);
    const from = resume === '' ? 0 : JSON.parse(readFileSync(resume, 'utf8')).step;
    const save = (step, text = JSON.stringify({ step, state: 'x'.repeat(1000) })) => {
      const path = join(dir, 'step-' + step + '.json');
      writeFileSync(path + '.tmp', text);
      renameSync(path + '.tmp', path);
    };
    const settle = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    ${waitForVerdict}
    const saved = async (step, text) => { save(step, text); await verdictOn('step-' + step + '.json'); };
    const say = (line) => console.log(line);
    const fail = (line) => { console.error(line); process.exit(1); };
    say('attempt ' + attempt + ' from ' + from + ' batch ' + MUSTER_BATCH_SCALE + ' lr ' + MUSTER_LR_SCALE + ' args ' + process.argv.slice(1).join(' '));
    (async () => { ${plan} })();`;
  return [process.execPath, '-e', text, '--'];
}

async function firstLines(jobId: string, attempts: number): Promise<readonly string[]> {
  const lines: string[] = [];
  for (let attempt = 1; attempt <= attempts; attempt += 1)
    lines.push((await cluster.output(jobId, { attempt })).split('\n')[0] ?? '');
  return lines;
}

describe('after a failure', () => {
  test('that no retry mends the job fails, with the line that shows it and what to do', async () => {
    const job = await cluster.run({
      command: program(`say('loading'); fail("ModuleNotFoundError: No module named 'flash_attn'");`),
    });
    expect(job).toMatchObject({
      state: 'failed',
      cause: { kind: 'import_error', blame: 'job', evidence: { line: 3 } },
      attempts: [{ number: 1 }],
    });
    const { nextSteps, details } = await cluster.api.explainJob(job.id);
    expect([...details, ...nextSteps].join('\n')).toMatch(/install|module|package/i);
  });

  test('for want of GPU memory it runs again with half the batch, in its environment and in its arguments', async () => {
    const oom = 'torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB';
    const job = await cluster.run({
      command: program(`await saved(attempt); if (attempt < 3) fail('${oom}');`),
      args: ['--batch={batch_size}', '{resume:--resume=}'],
      params: { batch_size: 32 },
      retry: { backoff: quick },
    });
    expect(job).toMatchObject({ state: 'succeeded', batchScale: 0.25 });
    expect(job.attempts.map(({ cause }) => cause?.kind)).toEqual(['cuda_oom', 'cuda_oom', undefined]);
    const [first, second, third] = await firstLines(job.id, 3);
    expect(first).toBe('attempt 1 from 0 batch 1 lr 1 args --batch=32');
    expect(second).toMatch(/^attempt 2 from 1 batch 0\.5 lr 1 args --batch=16 --resume=\S+step-1\.json$/);
    expect(third).toMatch(/^attempt 3 from 2 batch 0\.25 lr 1 args --batch=8 --resume=\S+step-2\.json$/);
    const shown = await cluster.muster(['job', job.id]);
    expect(shown.stdout).toMatch(/Scaled +batch_size 8 in the command \(32 × 0\.25\) after cuda_oom\n/);
    // It prints no steps: nothing shows that it has loaded its checkpoint.
    expect(shown.stdout).toContain('Start  offered step-2.json (step 2)\n');
  });

  test('of a checkpoint that cannot be loaded the one before is used, and that one is set aside, not called corrupt, until it was read twice', async () => {
    const dir = tempDir('corrupt').path;
    const job = await cluster.run({
      command: program(`
        if (attempt === 1) { await saved(1); await saved(2); fail('OSError: the mount went away'); }
        if (from === 2) fail('RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory');
        await settle(100);`),
      checkpoint: { dir },
      retry: { on: ['python_exception', 'exit_code', 'corrupt_checkpoint'], backoff: quick },
    });
    expect(job.state).toBe('succeeded');
    const starts = await firstLines(job.id, 3);
    expect(starts.map((line) => /from \d+/.exec(line)?.[0])).toEqual(['from 0', 'from 2', 'from 1']);
    expect(job.attempts[1]?.cause?.kind).toBe('corrupt_checkpoint');
    expect(job.checkpoints.find(({ step }) => step === 2)).toMatchObject({ verdict: 'corrupt' });
    const names = ['checkpoints_index.json', 'step-1.json', 'step-2.json.attempt-1'];
    expect(readdirSync(dir).sort()).toEqual(names);
    expect(readFileSync(join(dir, 'checkpoints_index.json'), 'utf8')).toContain('step-2.json');
  });

  test('one that PyTorch has written without sums is resumed from, read to its last byte as it is', async () => {
    const dir = tempDir('unsummed').path;
    const gate = join(tempDir('gate').path, 'open');
    const archives = join(repositoryDir, 'packages/checkpoints/src/testing/torchFile.ts');
    const text = `
      import { existsSync, renameSync, writeFileSync } from 'node:fs';
      import { torchEntries, withoutSums, zipOf } from ${JSON.stringify(archives)};
      console.log('from ' + process.env.MUSTER_RESUME_FROM);
      if (process.env.MUSTER_ATTEMPT === '1') {
        for (const step of [1, 2]) {
          writeFileSync('${dir}/.saving', zipOf(withoutSums(torchEntries(Buffer.alloc(100_000, step)))));
          renameSync('${dir}/.saving', '${dir}/step_' + step + '.pt');
        }
        while (!existsSync('${gate}')) await new Promise((resolve) => setTimeout(resolve, 50));
        console.error('OSError: the mount went away');
        process.exit(1);
      }`;
    const id = await cluster.submit({
      command: [process.execPath, '--input-type=module', '-e', text],
      checkpoint: { dir, verify: 'deep' },
      retry: { on: ['python_exception', 'exit_code'], backoff: quick },
    });
    // The end of an attempt does not wait for a deep verification for ever, and may be content with a quick one.
    await cluster.untilJob(id, 'has two checkpoints, read to their last byte', ({ checkpoints }) =>
      [1, 2].every((step) => checkpoints.some((each) => each.step === step && each.depth === 'deep')),
    );
    writeFileSync(gate, '');
    const job = await cluster.untilEnded(id);
    expect(job.state).toBe('succeeded');
    expect((await firstLines(job.id, 2))[1]).toBe(`from ${join(dir, 'step_2.pt')}`);
    expect(job.checkpoints).toMatchObject(
      [1, 2].map((step) => ({ step, verdict: 'verified', depth: 'deep' })),
    );
    expect(readdirSync(dir).sort()).toEqual(['checkpoints_index.json', 'step_1.pt', 'step_2.pt']);
  });

  test('one that is corrupt from the beginning is never resumed from', async () => {
    const job = await cluster.run({
      command: program(`
        if (attempt === 1) { await saved(1); await saved(2, '{"step": 2, "state"'); fail('ncclSystemError: System call failed'); }`),
      retry: { backoff: quick },
    });
    expect(job.state).toBe('succeeded');
    expect((await firstLines(job.id, 2))[1]).toContain('from 1');
    expect(job.checkpoints.find(({ step }) => step === 2)).toMatchObject({ verdict: 'corrupt' });
  });

  test('twice the same after one checkpoint, the one before is tried', async () => {
    const job = await cluster.run({
      command: program(`
        if (attempt === 1) { await saved(1); await saved(2); }
        if (from !== 1) fail('ValueError: poisoned optimizer state');`),
      retry: { on: ['python_exception', 'exit_code'], backoff: quick, breaker: { failures: 50 } },
    });
    expect(job.state).toBe('succeeded');
    const starts = (await firstLines(job.id, job.attempts.length)).map(
      (line) => /from (\d+)/.exec(line)?.[1],
    );
    expect(starts).toEqual(['0', '2', '2', '1']);
    expect(job.checkpoints.find(({ step }) => step === 2)?.suspect).toBe(true);
  });

  test('of the loss, with on_divergence: stop, it goes back behind that with a smaller learning rate', async () => {
    const lines = (from: number, to: number, loss: string) =>
      `for (let i = ${from}; i <= ${to}; i += 1) say('iter ' + i + ': loss ' + ${loss} + ', time 10.00ms, mfu 30.00%');`;
    const job = await cluster.run({
      command: program(`
        if (attempt > 1) { ${lines(11, 40, '(2.5 - i / 100).toFixed(4)')} return; }
        ${lines(1, 10, '(3 - i / 100).toFixed(4)')} await saved(10);
        ${lines(11, 20, '(2.9 - i / 100).toFixed(4)')} ${lines(21, 22, "'nan'")} await settle(500); save(22);
        await settle(60000);`),
      on_divergence: 'stop',
      stop_grace: '1s',
      retry: { backoff: quick },
    });
    expect(job).toMatchObject({ state: 'succeeded', lrScale: 0.1 });
    expect(job.attempts[0]?.cause).toMatchObject({
      kind: 'nan_loss',
      evidence: { text: expect.stringContaining('loss nan') },
    });
    expect((await firstLines(job.id, 2))[1]).toBe('attempt 2 from 10 batch 1 lr 0.1 args ');
    const kinds = (await cluster.events(job.id)).map(({ kind }) => kind);
    expect(kinds).toContain('training.nan_loss');
  });

  test('again and again without progress there is a pause, and then one trial', async () => {
    const spec: Spec = {
      command: program(
        `fail('ncclSystemError: System call (e.g. socket, malloc) or external library call failed');`,
      ),
      retry: { backoff: quick, breaker: { failures: 2, pause: '30s' } },
    };
    const jobId = await cluster.submit(spec);
    const job = await cluster.untilJob(jobId, 'pauses', ({ pending }) => pending?.kind === 'circuit_open');
    expect(job.attempts.length).toBe(2);
    expect(job.pending?.message).toMatch(/2 failures/);
    await cluster.api.stopJobs([jobId]);
    await cluster.untilEnded(jobId);
  });
});

describe('by hand', () => {
  const trained: Spec = {
    command: program(`for (const step of [1, 2, 3]) await saved(step);`),
  };

  test('requeue of an ended job goes on from its newest checkpoint, from a step, or from the start', async () => {
    const done = await cluster.run(trained);
    expect(done.checkpoints.map(({ step }) => step)).toEqual([1, 2, 3]);
    for (const [flags, from] of [
      [[], '3'],
      [['--from', '2'], '2'],
      [['--from', 'start'], '0'],
    ] as const) {
      const { exitCode, stdout, stderr } = await cluster.muster(['requeue', done.id, '--wait', ...flags]);
      expect(exitCode, stderr).toBe(0);
      const jobId = stdout.trim().split('\n')[0] ?? '';
      expect((await firstLines(jobId, 1))[0]).toContain(`from ${from} `);
    }
    const wrong = await cluster.muster(['requeue', done.id, '--from', '0']);
    expect(wrong.exitCode).toBe(3);
    expect(wrong.stderr).toMatch(/step.*1/);
  });

  test('extend gives more time, and the time limit says what is kept', async () => {
    const jobId = await cluster.submit({
      command: program(`save(1); await settle(14_000); say('done');`),
      max_runtime: '12s',
      stop_grace: '1s',
    });
    await cluster.until(jobId, 'running');
    const { stdout, exitCode } = await cluster.muster(['extend', jobId, '1m']);
    expect({ stdout, exitCode }).toMatchObject({ exitCode: 0 });
    expect(await cluster.untilEnded(jobId)).toMatchObject({ state: 'succeeded' });

    const limited = await cluster.run({
      command: program(`save(1); await settle(60000);`),
      // Time enough for a busy machine to start a program.
      max_runtime: '10s',
      stop_grace: '1s',
    });
    expect(limited).toMatchObject({ state: 'failed', cause: { kind: 'time_limit' } });
    expect(limited.checkpoints).toMatchObject([{ step: 1, verdict: 'verified' }]);
  });

  test('a marker ends the job as succeeded, whatever the program does then', async () => {
    const job = await cluster.run({
      command: program(
        `save(1); writeFileSync(join(dir, 'training_complete.marker'), ''); await settle(600000);`,
      ),
      stop_grace: '1s',
    });
    expect(job).toMatchObject({ state: 'succeeded' });
  });
});

describe('the checkpoint directory', () => {
  test('keeps what the spec says, and nothing outside is touched', async () => {
    const dir = tempDir('kept').path;
    const outside = tempDir('outside').path;
    writeFileSync(join(outside, 'step-1.json'), '{"step": 1}');
    symlinkSync(join(outside, 'step-1.json'), join(dir, 'step-0.json'));
    const job = await cluster.run({
      command: program(`
        for (let step = 1; step <= 6; step += 1) await saved(step);
        for (const step of [1, 2, 4]) while (existsSync(join(dir, 'step-' + step + '.json'))) await settle(20);`),
      checkpoint: { dir, keep_last: 2, keep_every: 3 },
    });
    expect(job.state).toBe('succeeded');
    const kept = readdirSync(dir).filter((name) => name.startsWith('step-'));
    expect(kept.sort()).toEqual(['step-0.json', 'step-3.json', 'step-5.json', 'step-6.json']);
    expect(existsSync(join(outside, 'step-1.json'))).toBe(true);
  });

  test('edited job in the same directory is refused, and continues from the first one when it is asked to', async () => {
    const dir = tempDir('edited').path;
    const saves = (steps: string, lr: string): Spec => ({
      command: program(`for (const step of [${steps}]) await saved(step);`),
      env: { LR: lr },
      checkpoint: { dir },
    });
    const first = await cluster.run(saves('1, 2', '0.1'));
    expect(first.state).toBe('succeeded');
    const before = readFileSync(join(dir, 'step-1.json'));

    const edited = await cluster.run(saves('1', '0.2'));
    expect(edited).toMatchObject({ state: 'failed', cause: { kind: 'checkpoint_conflict' } });
    expect(edited.cause?.message).toContain(`${dir} holds checkpoints of ${first.id}`);
    expect(edited.cause?.message).toContain(`muster submit --resume-from ${first.id}`);
    expect(edited.attempts).toHaveLength(1);
    expect(readFileSync(join(dir, 'step-1.json'))).toEqual(before);

    const submit = async (...flags: string[]) => {
      const command = program('await saved(from + 1);');
      const { exitCode, stdout, stderr } = await cluster.muster(['submit', ...flags, '--', ...command]);
      expect(exitCode, stderr).toBe(0);
      const job = await cluster.untilEnded(stdout.trim());
      expect(job.state, job.cause?.message).toBe('succeeded');
      return { job, line: (await firstLines(job.id, 1))[0] };
    };
    const same = await submit('--resume-from', first.id, '--checkpoint-dir', dir);
    expect(same.line).toContain('from 2 ');
    expect(same.job.resumedFrom).toEqual({ jobId: first.id, name: 'step-2.json', step: 2 });
    const shown = await cluster.muster(['job', same.job.id]);
    expect(shown.stdout).toMatch(new RegExp(`Continues from +${first.id}, step-2.json \\(step 2\\)`));

    const elsewhere = tempDir('elsewhere').path;
    const other = await submit('--resume-from', same.job.id, '--checkpoint-dir', elsewhere);
    expect(other.line).toContain('from 3 ');
    const atPath = await submit(
      '--resume-from',
      join(dir, 'step-1.json'),
      '--checkpoint-dir',
      tempDir('path').path,
    );
    expect(atPath.line).toContain('from 1 ');
    // Of a job that named no directory its node keeps one.
    const kept = await cluster.run({ command: program('await saved(7);') });
    const named = await submit('--resume-from', kept.id, '--checkpoint-dir', tempDir('named').path);
    expect(named.line).toContain('from 7 ');
    expect(readdirSync(elsewhere).sort()).toEqual(['checkpoints_index.json', 'step-4.json']);
  });

  test('that is a symbolic link is not watched, and the job runs all the same', async () => {
    const real = tempDir('real').path;
    const link = join(tempDir('link').path, 'dir');
    symlinkSync(real, link);
    const job = await cluster.run({
      command: program(`save(1); await settle(1500);`),
      checkpoint: { dir: link },
    });
    expect(job).toMatchObject({ state: 'succeeded', checkpoints: [] });
    expect(readdirSync(real)).toEqual(['step-1.json']);
    const node = await cluster.api.getNode(job.attempts[0]?.tasks[0]?.node ?? '');
    expect(node.conditions).toMatchObject([
      { kind: 'checkpoint_directory', evidence: `${job.id}: ${link} is a symbolic link` },
    ]);
  });
});

test('verify tells good checkpoints from bad ones, without a coordinator', async () => {
  const dir = tempDir('verify').path;
  const done = await cluster.run({
    command: program('save(1); save(2); await settle(500);'),
    checkpoint: { dir },
  });
  expect(done.state).toBe('succeeded');
  truncateSync(join(dir, 'step-2.json'), 10);
  const { exitCode, stdout } = await cluster.muster(['checkpoint', 'verify', dir]);
  expect(exitCode, stdout).toBe(1);
  expect(stdout).toMatch(/step-1\.json.*verified|verified.*step-1\.json/);
  expect(stdout).toMatch(/step-2\.json.*corrupt|corrupt.*step-2\.json/);
});

test('diagnose reads a log that Muster never saw, and that of a job', async () => {
  const log = join(tempDir('log').path, 'train.log');
  writeFileSync(
    log,
    'iter 1: loss 2.0000, time 5.00ms, mfu 1.00%\nTraceback (most recent call last):\n' +
      '  File "train.py", line 1, in <module>\nImportError: libfoo.so: undefined symbol: bar\n',
  );
  const file = await cluster.muster(['diagnose', log, '-o', 'json']);
  expect(JSON.parse(file.stdout)).toMatchObject({
    state: 'failed',
    cause: 'import_error',
    blame: 'job',
    evidence: { line: 4 },
    framework: 'nanogpt',
    metrics: { rows: 1 },
  });
  const job = await cluster.run({ command: `cat ${log}; exit 1`, workdir: repositoryDir });
  const ofJob = await cluster.muster(['diagnose', job.id, '-o', 'json']);
  expect(JSON.parse(ofJob.stdout)).toMatchObject({ cause: 'import_error', evidence: { line: 4 } });
});
