/** Jobs in containers, on the machine's Docker engine, with images that the tests make themselves. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type JobId, taskKey } from '@muster/common/ids';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, type Spec, startCluster } from '../support/cluster.ts';
import { ensureTestImage } from '../support/images.ts';
import { tempDir, waitFor } from '../support/services.ts';
import { expectSameText } from '../support/text.ts';

let cluster: Cluster;
let image = '';
/** What the node lets jobs mount. */
let shared = '';
beforeAll(async () => {
  image = await ensureTestImage();
  shared = tempDir('volumes').path;
  cluster = await startCluster({
    nodes: 1,
    gpus: 2,
    agentFlags: () => ['--mount-root', shared, '--output-cap', `${nodeCapMb}M`, '--output-rate', '1M'],
    coordinatorFlags: ['--log-cap', '1M'],
  });
});

const megabyte = 1024 * 1024;
/** Output that the node keeps of one task. */
const nodeCapMb = 2;

const idle = 'while :; do { sleep 1 & wait $!; } 2>/dev/null; done';

function inContainer(command: Spec['command'], more: Spec = {}): Spec {
  return { image, ...more, ...(command === undefined ? {} : { command }) };
}

/** For every user, as containers have one of their own. */
function aFolder(): string {
  const path = mkdtempSync(join(shared, 'volume-'));
  chmodSync(path, 0o777);
  return path;
}

/** The container's id and the pid of its main process, both of which a restart would change. */
function containerOf(jobId: string): string {
  const name = `muster-${jobId}-1-0`;
  return execFileSync('docker', ['inspect', '-f', '{{.Id}} {{.State.Pid}} {{.State.Status}}', name], {
    encoding: 'utf8',
  }).trim();
}

describe('a job with an image', () => {
  test('runs in its own file system, and all it printed is there in order', async () => {
    const job = await cluster.run(inContainer('ls /; echo err >&2; echo out'));
    expect(job).toMatchObject({ state: 'succeeded', attempts: [{ tasks: [{ exit: { exitCode: 0 } }] }] });
    const lines = (await cluster.output(job.id)).trim().split('\n');
    expect(lines).toContain('bin');
    expect(lines).not.toContain('home');
    expect(lines.slice(-2)).toEqual(['err', 'out']);
  });

  test('gets the environment contract, its own variables, and what the image says where it says more', async () => {
    const spec = inContainer(['env'], { env: { MINE: 'a b\nc' }, resources: { gpus: 1 }, workdir: '/tmp' });
    const job = await cluster.run(spec);
    const output = await cluster.output(job.id);
    const gpu = job.attempts[0]?.tasks[0]?.gpuUuids[0];
    expect(output).toContain(`MUSTER_JOB_ID=${job.id}\n`);
    expect(output).toContain(`MASTER_PORT=${job.attempts[0]?.masterPort}\n`);
    expect(output).toContain(`CUDA_VISIBLE_DEVICES=${gpu}\n`);
    expect(output).toContain('MINE=a b\nc\n');
    expect(output).toContain('PATH=/bin\n');
  });

  test('sees the volumes it names, and cannot write to those that are read only', async () => {
    const path = aFolder();
    writeFileSync(join(path, 'given'), 'from the node\n');
    const script = 'cat /in/given; echo into the node > /out/made; touch /in/more';
    const job = await cluster.run(inContainer(script, { volumes: [`${path}:/in:ro`, `${path}:/out`] }));
    expect(job).toMatchObject({ state: 'failed', cause: { kind: 'exit_code' } });
    expect(await cluster.output(job.id)).toMatch(/^from the node\n.*Read-only file system\n$/);
    expect(readFileSync(join(path, 'made'), 'utf8')).toBe('into the node\n');
  });

  test('that wants what its node does not let it mount is informed, with the setting', async () => {
    const retry = { max_attempts: 1, backoff: { initial: '100ms', max: '100ms' } };
    const job = await cluster.run(
      inContainer('cat /host/admin.token', { volumes: [`${cluster.dataDir}:/host`], retry }),
    );
    expect(job).toMatchObject({ state: 'failed', cause: { node: 'node-1' } });
    expect(job.cause?.message).toContain(`--mount-root ${cluster.dataDir}`);
  });

  test('fails with its exit code, and is stopped with SIGTERM and its grace', async () => {
    const failed = await cluster.run(inContainer('exit 3'));
    expect(failed.cause).toMatchObject({ kind: 'exit_code', message: 'rank 0 on node-1 exited with code 3' });

    const polite = await cluster.submit(inContainer(`trap 'echo saved; exit 0' TERM; echo ready; ${idle}`));
    const deaf = await cluster.submit(
      inContainer(`trap 'echo heard' TERM; echo ready; ${idle}`, { stop_grace: '3s' }),
    );
    for (const id of [polite, deaf]) await cluster.untilOutput(id, 'ready\n');
    await cluster.api.stopJobs([polite, deaf]);
    const [saved, killed] = [await cluster.untilEnded(polite), await cluster.untilEnded(deaf)];
    expect(saved).toMatchObject({ state: 'cancelled', attempts: [{ tasks: [{ exit: { exitCode: 0 } }] }] });
    expect(await cluster.output(polite)).toBe('ready\nsaved\n');
    expect(killed).toMatchObject({
      state: 'cancelled',
      attempts: [{ tasks: [{ exit: { signal: 'SIGKILL' } }] }],
    });
    expect(await cluster.output(deaf)).toBe('ready\nheard\n');
  });

  test.each<{ what: string; spec: () => Spec; kind: string; message: RegExp }>([
    {
      what: 'an image that does not exist',
      // Another node might have got it, so it is tried again, though not for long.
      spec: () => ({
        image: 'no-such-image.invalid/anything:1',
        command: 'true',
        retry: { max_attempts: 1, backoff: { initial: '100ms', max: '100ms' } },
      }),
      kind: 'image_pull',
      message: /no-such-image\.invalid\/anything:1/,
    },
    {
      what: 'a command that the image does not have',
      spec: () => inContainer(['no-such-program']),
      kind: 'command_not_found',
      message: /no-such-program/,
    },
  ])('that names $what fails with that cause', async ({ spec, kind, message }) => {
    const job = await cluster.run(spec());
    expect(job).toMatchObject({ state: 'failed', cause: { kind, nodeRank: 0, node: 'node-1' } });
    expect(job.cause?.message).toMatch(message);
  });

  test('runs on while its agent is killed, and is found again: running, or ended meanwhile', async () => {
    const gate = aFolder();
    const script = (end: string) =>
      `echo before; while [ ! -e /gate/${end} ]; do sleep 0.05; done; echo after; exit 5`;
    const volumes = [`${gate}:/gate`];
    const [later, meanwhile] = [
      await cluster.submit(inContainer(script('later'), { volumes })),
      await cluster.submit(inContainer(script('meanwhile'), { volumes })),
    ];
    for (const id of [later, meanwhile]) await cluster.untilOutput(id, 'before\n');
    const running = containerOf(later);
    await cluster.agent(0).kill();
    writeFileSync(join(gate, 'meanwhile'), '');
    execFileSync('docker', ['wait', `muster-${meanwhile}-1-0`]);
    await cluster.agent(0).start();
    const ended = await cluster.untilEnded(meanwhile);
    expect(containerOf(later)).toBe(running);
    writeFileSync(join(gate, 'later'), '');
    for (const job of [ended, await cluster.untilEnded(later)]) {
      expect(job).toMatchObject({
        state: 'failed',
        attempts: [{ number: 1, tasks: [{ exit: { exitCode: 5 } }] }],
      });
      expect(await cluster.output(job.id)).toBe('before\nafter\n');
    }
  });

  test('that prints without end is held back and cut, can be stopped, and takes nothing from another', async () => {
    const gate = aFolder();
    const quiet = await cluster.submit(
      inContainer(
        'i=0; while [ ! -e /gate/quiet ]; do echo tick $i; i=$((i+1)); sleep 0.05; done; echo end',
        {
          volumes: [`${gate}:/gate`],
        },
      ),
    );
    await cluster.untilOutput(quiet, 'tick 1\n');
    const noisy = await cluster.submit(inContainer('echo first; exec yes', { stop_grace: '500ms' }));
    await waitFor(
      'it is told that its output was dropped, and that it is held back',
      async () => (await cluster.events()).filter(({ subject }) => subject === noisy).map(({ kind }) => kind),
      { until: (kinds) => kinds.includes('log.truncated') && kinds.includes('log.throttled') },
    );
    // However much it has printed, its file comes back to its cap.
    const task = { jobId: noisy as JobId, attempt: 1, nodeRank: 0 };
    const path = join(cluster.agentDataDir(cluster.agent(0)), 'tasks', taskKey(task), 'output.log');
    for (let count = 0, least = 0; count < 3; count += 1) {
      const { size } = await waitFor(
        'it has printed more, and what is kept of it is bounded',
        () => statSync(path),
        {
          until: (file) => file.size > least && file.blocks * 512 <= nodeCapMb * megabyte,
        },
      );
      least = size + 2 * nodeCapMb * megabyte;
    }
    const after = await cluster.run(inContainer('echo well'));
    expect(after).toMatchObject({ state: 'succeeded' });
    expect(await cluster.output(after.id)).toBe('well\n');

    await cluster.api.stopJobs([noisy]);
    expect(await cluster.untilEnded(noisy)).toMatchObject({ state: 'cancelled', attempts: [{ number: 1 }] });
    const text = await cluster.output(noisy);
    expect(text.slice(0, 10)).toBe('first\ny\ny\n');
    expect(text).toMatch(/\n\[muster\] \d+ bytes of output were dropped/);
    writeFileSync(join(gate, 'quiet'), '');
    expect(await cluster.untilEnded(quiet)).toMatchObject({ state: 'succeeded', attempts: [{ number: 1 }] });
    const ticks = await cluster.output(quiet);
    const count = ticks.split('\n').length - 2;
    expectSameText(
      ticks,
      `${Array.from({ length: count }, (_each, index) => `tick ${index}\n`).join('')}end\n`,
    );
  });

  test('that prints without end is held back also where it has no lease', async () => {
    const noisy = await cluster.submit(inContainer('exec yes', { stop_grace: '500ms', node_loss: 'hold' }));
    await waitFor(
      'it is told that its output was dropped, and that it is held back',
      async () => (await cluster.events()).filter(({ subject }) => subject === noisy).map(({ kind }) => kind),
      { until: (kinds) => kinds.includes('log.truncated') && kinds.includes('log.throttled') },
    );
    await cluster.api.stopJobs([noisy]);
    expect(await cluster.untilEnded(noisy)).toMatchObject({ state: 'cancelled' });
  });
});
