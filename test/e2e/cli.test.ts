/** The `muster` command against a real cluster: what it prints, what it exits with, and what Ctrl-C leaves alone. */
import { execFileSync, spawn } from 'node:child_process';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { stripVTControlCharacters } from 'node:util';
import type { ExplainView, JobView, NodeView } from '@muster/common/views';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { musterProgram } from '../support/command.ts';
import { waitFor } from '../support/services.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ nodes: 2 });
});

const idle = 'while :; do { sleep 1 & wait $!; } 2>/dev/null; done';
const escape = '\u001b';

async function json<T>(...args: readonly string[]): Promise<T> {
  const { exitCode, stdout, stderr } = await cluster.muster([...args, '-o', 'json']);
  expect(exitCode, stderr).toBe(0);
  return JSON.parse(stdout) as T;
}

describe('muster submit', () => {
  test('prints the id of the job and nothing else', async () => {
    const { exitCode, stdout, stderr } = await cluster.muster([
      'submit',
      '--name',
      'quiet',
      '--',
      'sh',
      '-c',
      'exit 3',
    ]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(stdout).toMatch(/^job_\w{12}\n$/);
    expect(await cluster.untilEnded(stdout.trim())).toMatchObject({ name: 'quiet', state: 'failed' });
  });

  test('--wait exits 0 for a job that succeeds and 1 for one that does not, and says why', async () => {
    const good = await cluster.muster(['submit', '--wait', '--', 'true']);
    expect(good.exitCode, good.stderr).toBe(0);
    const bad = await cluster.muster(['submit', '--wait', '--', 'sh', '-c', 'exit 3']);
    expect(bad.exitCode).toBe(1);
    expect(bad.stderr).toMatch(/rank 0 on node-\d exited with code 3/);
    expect(bad.stderr).toMatch(/muster explain job_\w{12}/);
    const array = await cluster.muster([
      'submit',
      '--wait',
      '--array',
      '3',
      '--',
      'sh',
      '-c',
      'echo hello; exit $MUSTER_ARRAY_INDEX',
    ]);
    expect(array.exitCode).toBe(1);
    expect(array.stdout).toMatch(/^arr_\w{12}\n$/);
    expect(array.stderr).toMatch(/2 of 3 jobs/);
    const id = array.stdout.trim();
    const logs = await cluster.muster(['logs', '-f', id]);
    expect(logs.stdout.trim().split('\n').toSorted()).toEqual(['[0] hello', '[1] hello', '[2] hello']);
    expect((await cluster.muster(['job', id])).stdout).toContain('1 succeeded, 2 failed');
    expect((await cluster.muster(['explain', id])).stdout).toMatch(
      /2 of 3 jobs did not succeed; most common cause: .+ \(1 job\)\./,
    );
    const again = await cluster.muster(['requeue', id, '--wait']);
    expect(again.exitCode, again.stderr).toBe(1);
    expect(again.stderr).toContain('requeued 2 of 3 jobs (2 failed)');
    expect(again.stderr).toContain('2 of 3 jobs did not succeed: 1 succeeded, 2 failed');
  });

  test('runs the Python of the active venv, and says so', async () => {
    const venv = join(cluster.workDir, 'venv');
    execFileSync('python3', ['-m', 'venv', '--without-pip', venv]);
    const script = ['--', 'python', '-c', 'import sys; print(sys.prefix)'];
    const own = await cluster.muster(['submit', '--follow', ...script], { env: { VIRTUAL_ENV: venv } });
    expect(own.stdout, own.stderr).toBe(`${venv}\n`);
    expect(own.stderr).toContain(`using the venv ${venv} (VIRTUAL_ENV)\n`);
    const none = ['submit', '--follow', '--export', 'none', '--', 'python3', ...script.slice(2)];
    const system = await cluster.muster(none, { env: { VIRTUAL_ENV: venv } });
    expect(system.stdout.trim(), system.stderr).not.toBe(venv);
  });

  test('--follow shows the output to the byte, on stdout alone', async () => {
    const { exitCode, stdout } = await cluster.muster([
      'submit',
      '--follow',
      '--',
      'printf',
      'one\\n\\ttwo %s',
      'three',
    ]);
    expect(exitCode).toBe(0);
    expect(stdout).toBe('one\n\ttwo three');
  });

  test('--follow of a gang puts the rank before every line', async () => {
    const script = 'for i in 1 2 3; do echo line $i; done; printf unfinished';
    const { exitCode, stdout } = await cluster.muster([
      'submit',
      '--follow',
      '--nodes',
      '2',
      '--',
      'sh',
      '-c',
      script,
    ]);
    expect(exitCode).toBe(0);
    const lines = ['line 1', 'line 2', 'line 3', 'unfinished'];
    for (const rank of [0, 1]) {
      const own = stdout.split('\n').filter((line) => line.startsWith(`[${rank}] `));
      expect(own).toEqual(lines.map((line) => `[${rank}] ${line}`));
    }
    expect(stdout).not.toContain(escape);
  });

  test('waits for a coordinator that is being restarted, and submits once', async () => {
    await cluster.coordinator.kill();
    const submitting = cluster.startMuster(['submit', '--name', 'patient', '--wait', '--', 'echo', 'once']);
    // Long enough for it to have tried; a machine on which it has not only makes the test easier.
    await delay(1_000);
    await cluster.coordinator.start();
    await cluster.untilOnline();
    const { exitCode, stdout, stderr } = await submitting.ended;
    expect(exitCode, stderr).toBe(0);
    const { jobs } = await cluster.api.listJobs({ name: 'patient' });
    expect(jobs.map(({ id }) => id)).toEqual([stdout.trim()]);
  });
});

describe('Ctrl-C', () => {
  test.each([
    ['submit', '--follow'],
    ['submit', '--wait'],
    ['logs', '-f'],
  ])('on muster %s %s leaves the job running', async (...how) => {
    const script = `echo ready; ${idle}`;
    const jobId = how[0] === 'logs' ? await cluster.submit({ command: script }) : null;
    const args = jobId === null ? [...how, '--name', 'watched', '--', 'sh', '-c', script] : [...how, jobId];
    const command = cluster.startMuster(args);
    await command.untilPrinted(how[1] === '--wait' ? 'job_' : 'ready\n');
    command.signal('SIGINT');
    const { exitCode, stdout, stderr } = await command.ended;
    expect(exitCode, stderr).toBe(130);
    expect(stderr).toMatch(/Detached\. job_\w{12} is still (?:queued|starting|running)\./);
    const watched = jobId ?? /job_\w{12}/.exec(stdout + stderr)?.[0] ?? '';
    expect(await cluster.until(watched, 'running')).toMatchObject({ state: 'running' });
    await cluster.api.stopJobs([watched]);
    await cluster.untilEnded(watched);
  });
});

describe('for programs', () => {
  test('-o json is what the API says', async () => {
    const job = await cluster.run({ name: 'shown', command: 'echo hi' });
    expect(await json<JobView>('job', job.id)).toEqual(job);
    expect(await json<JobView>('job', 'shown')).toEqual(job);
    const { jobs } = await json<{ jobs: readonly JobView[] }>('jobs', '--name', 'shown');
    expect(jobs).toEqual([job]);
    expect(await json<ExplainView>('explain', job.id)).toEqual(await cluster.api.explainJob(job.id));
    const nodes = await json<{ nodes: readonly NodeView[] }>('nodes');
    expect(nodes.nodes.map(({ name, state }) => `${name} ${state}`)).toEqual([
      'node-1 online',
      'node-2 online',
    ]);
    expect(await json<NodeView>('node', 'node-1')).toMatchObject({
      name: 'node-1',
      inventory: { gpus: { length: 2 } },
    });
  });

  test('the tables hold no colours, and every command says what there is', async () => {
    const jobId = await cluster.submit({
      name: 'table',
      command: `echo ready; ${idle}`,
      resources: { gpus: 1 },
    });
    await cluster.untilOutput(jobId, 'ready\n');
    for (const [args, words] of [
      [['jobs'], [jobId, 'table', 'running']],
      [
        ['job', jobId],
        [jobId, 'table', 'running', 'node-'],
      ],
      [['nodes'], ['node-1', 'node-2', 'online']],
      [
        ['explain', jobId],
        [jobId, 'running'],
      ],
      [
        ['events', '--subject', jobId],
        ['job.submitted', 'attempt.running'],
      ],
      [['logs', jobId], ['ready']],
      [['logs', '--tail', '1', jobId], ['ready']],
    ] as const) {
      const { exitCode, stdout, stderr } = await cluster.muster([...args]);
      expect(exitCode, stderr).toBe(0);
      for (const word of words) expect(stdout, args.join(' ')).toContain(word);
      expect(stdout).not.toContain(escape);
    }
    const stopped = await cluster.muster(['stop', '--reason', 'seen enough', jobId]);
    expect(stopped.stdout).toMatch(/table is (stopping|cancelled)/);
    expect(await cluster.untilEnded(jobId)).toMatchObject({
      state: 'cancelled',
      cause: { message: 'seen enough' },
    });
  });

  test('jobs --watch follows on a terminal, and gives it back', async () => {
    const first = await cluster.submit({ name: 'seen-first', command: idle });
    const line = `stty cols 100 rows 30; ${musterProgram} jobs --watch`;
    const terminal = spawn('script', ['-qec', line, '/dev/null'], {
      env: {
        PATH: process.env.PATH,
        MUSTER_ADDR: cluster.address,
        MUSTER_TOKEN: cluster.adminToken,
        TERM: 'xterm',
      },
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    const ended = new Promise((resolve) => terminal.on('close', resolve));
    let screen = '';
    terminal.stdout.setEncoding('utf8').on('data', (text: string) => {
      screen += text;
    });
    await waitFor('the table is painted', () => screen, { until: (text) => text.includes('q quits') });
    expect(screen).toContain(`${escape}[?1049h`);
    expect(screen).toContain('seen-first');
    const second = await cluster.submit({ name: 'seen-later', command: idle });
    await waitFor('the new job is painted', () => screen, { until: (text) => text.includes('seen-later') });
    // Each picture begins in the corner, behind the end of the one before.
    const rows = stripVTControlCharacters(screen.replaceAll(`${escape}[H`, '\n')).split(/\r*\n/);
    expect(Math.max(...rows.map((row) => row.length))).toBeLessThanOrEqual(100);
    terminal.stdin.write('q');
    expect(await ended).toBe(0);
    expect(screen.endsWith(`${escape}[?7h${escape}[?25h${escape}[?1049l`)).toBe(true);
    await cluster.api.stopJobs([first, second]);
  });

  test('requeue and token print one word', async () => {
    const job = await cluster.run({ command: 'exit 1' });
    const requeued = await cluster.muster(['requeue', job.id]);
    expect(requeued.stdout).toMatch(/^job_\w{12}\n$/);
    expect(await cluster.untilEnded(requeued.stdout.trim())).toMatchObject({ requeuedFrom: job.id });
    const token = await cluster.muster(['token', 'create', 'newcomer']);
    expect(token.stdout).toMatch(/^muster_join_[\w-]+\n$/);
  });

  test('every shell gets its completion', async () => {
    for (const shell of ['bash', 'zsh', 'fish']) {
      const { exitCode, stdout } = await cluster.muster(['completion', shell]);
      expect(exitCode, shell).toBe(0);
      expect(stdout, shell).toContain('muster');
    }
  });
});
