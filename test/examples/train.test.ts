import { randomInt } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { tempDir, waitFor } from '../support/services.ts';
import {
  deliveries,
  examplesDir,
  gone,
  latestCheckpoint,
  NodeRun,
  prepareRun,
  startRun,
  type TrainingRun,
} from './trainingRun.ts';

const program = join(examplesDir, 'train.mjs');
const train = (...flags: readonly string[]) => [process.execPath, program, ...flags];
/** As long as a test needs it to be, however slow the machine. */
const endless = train('--steps=1000000', '--step-ms=5', '--log-every=1', '--save-every=0');

/** Status of a node of which a rank was killed: a busy launcher may see the other rank go first. */
const killedOrBereft: unknown = expect.toBeOneOf([137, 1]);

const noted = async (run: TrainingRun, text: string) => {
  await waitFor(`"${text}"`, () => run.output.includes(text) || run.output, {
    until: (seen) => seen === true,
  });
};

async function portIsOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('connect', () => resolve(true)).on('error', () => resolve(false));
    socket.on('connect', () => socket.end('GET / HTTP/1.1\r\n\r\n'));
  });
}

describe('a run of 2 nodes x 2 ranks', () => {
  it('brings the loss down, saves on the way and at the end, and says so', async () => {
    const dir = tempDir('train').path;
    const run = await startRun({ command: train('--steps=200'), env: { MUSTER_CHECKPOINT_DIR: dir } });
    expect(await run.ended()).toEqual([0, 0]);
    const losses = run.losses();
    expect(losses).toHaveLength(21);
    expect(losses.at(-1)).toBeLessThan((losses[0] ?? 0) / 4);
    for (let rank = 0; rank < 4; rank += 1) {
      expect(run.output).toContain(`rank ${rank}/4 on node ${rank < 2 ? 0 : 1} ready\n`);
    }
    expect(run.output).toContain(
      `world size 4, peers met at 127.0.0.1:${run.port}, starting fresh at step 0\n`,
    );
    const checkpoints = ['000050', '000100', '000150', '000200'].map((step) => `step-${step}.json`);
    expect(readdirSync(dir).sort()).toEqual(checkpoints);
    for (const name of checkpoints) expect(run.output).toContain(`saving checkpoint to ${join(dir, name)}\n`);
    expect(run.digest()).not.toBeNull();
  });

  it('ends with the same bits as 1 node x 4 ranks, and with others from another seed', async () => {
    const layouts = [
      { command: train() },
      { command: train(), nodeCount: 1, ranksPerNode: 4 },
      { command: train('--seed=2') },
    ];
    const digests: (string | null)[] = [];
    for (const layout of layouts) {
      const run = await startRun(layout);
      await run.ended();
      digests.push(run.digest());
    }
    expect(digests[0]).toMatch(/^sha256:/);
    expect(digests[1]).toBe(digests[0]);
    expect(digests[2]).not.toBe(digests[0]);
  });

  it('stopped at random moments and resumed, ends with the bits of an undisturbed run', async () => {
    const dir = tempDir('train').path;
    const command = train('--steps=300', '--step-ms=5', '--log-every=1', '--save-every=0');
    const undisturbed = await startRun({ command: train('--steps=300') });
    expect(await undisturbed.ended()).toEqual([0, 0]);

    let resumeFrom: string | null = null;
    let step = 0;
    for (const [name, deliver] of Object.entries(deliveries)) {
      const env = { MUSTER_CHECKPOINT_DIR: dir, MUSTER_RESUME_FROM: resumeFrom ?? '' };
      const run: TrainingRun = await startRun({ command, env });
      step += randomInt(1, 50);
      await run.reached(step);
      await deliver(run);
      expect(await run.ended(), `SIGTERM to ${name} after step ${step}: ${run.output}`).toEqual([143, 143]);
      resumeFrom = latestCheckpoint(dir);
      const saved = Number(/step-(\d+)/.exec(resumeFrom ?? '')?.[1]);
      expect(saved).toBeGreaterThanOrEqual(step);
      expect(run.output).toContain(
        `stopping after step ${saved}, as asked\nsaving checkpoint to ${resumeFrom}\n`,
      );
      step = saved;
    }

    const last = await startRun({ command, env: { MUSTER_RESUME_FROM: resumeFrom ?? '' } });
    expect(await last.ended()).toEqual([0, 0]);
    expect(last.output).toContain(`resuming from ${resumeFrom} at step ${step}\n`);
    expect(last.digest()).toBe(undisturbed.digest());
    expect(readdirSync(dir).filter((name) => name.includes('.tmp'))).toEqual([]);
  });
});

describe('SIGTERM before training began', () => {
  it('ends a node that waits for others', async () => {
    const run = await prepareRun({ command: train() });
    const node = run.startNode(0);
    await waitFor('rank 0 listens', () => portIsOpen(run.port));
    node.signalLauncher('SIGTERM');
    expect(await node.ended()).toBe(143);
    expect(node.output).toContain('[rank0]: stopped before training began\n');
  });

  it('asked to rank 0 alone, ends those who have met it too', async () => {
    const run = await prepareRun({ command: train(), nodeCount: 3 });
    const first = run.startNode(0);
    const second = run.startNode(1);
    for (const rank of [1, 2, 3]) await noted(run, `rank ${rank}/6`);
    first.signalGroup('SIGTERM');
    expect(await second.ended()).toBe(143);
    expect(await first.ended()).toBe(143);
  });
});

describe('a loss', () => {
  it('of a killed rank ends all ranks, with a word about which it was', async () => {
    const run = await startRun({ command: endless });
    await run.reached(3);
    const pids = run.nodes.flatMap((node) => [...node.ranks().values()]);
    expect(pids).toHaveLength(4);
    process.kill(await run.rank(3), 'SIGKILL');
    expect(await run.ended()).toEqual([1, killedOrBereft]);
    expect(run.output).toMatch(/^\[rank0\]: lost rank 3 while training: /m);
    expect(run.output).toContain('[rank3]: ended by SIGKILL\n');
    await gone(pids);
  });

  it('of a killed launcher ends its ranks and all others', async () => {
    const run = await startRun({ command: endless });
    await run.reached(3);
    const pids = run.nodes.flatMap((node) => [...node.ranks().values()]);
    run.nodes[1]?.signalLauncher('SIGKILL');
    expect(await run.ended()).toEqual([1, 137]);
    await gone(pids);
  });

  it('is noticed at once, also in the middle of a long step', async () => {
    const run = await startRun({ command: train('--step-ms=600000') });
    for (const rank of [0, 1, 2, 3]) await noted(run, `rank ${rank}/4`);
    await noted(run, 'starting fresh');
    process.kill(await run.rank(3), 'SIGKILL');
    expect(await run.ended()).toEqual([1, killedOrBereft]);
  });

  it('of a rank that only stands still is noticed after --collective-timeout', async () => {
    const run = await startRun({ command: [...endless, '--collective-timeout=1'] });
    await run.reached(3);
    const pids = run.nodes.flatMap((node) => [...node.ranks().values()]);
    process.kill(await run.rank(3), 'SIGSTOP');
    expect(await run.ended()).toEqual([1, 1]);
    expect(run.output).toMatch(/^\[rank0\]: no word from rank 3 for 1 s: does it hang\?$/m);
    await gone(pids);
  });

  it('of ranks that never come ends the others after --rendezvous-timeout', async () => {
    const run = await prepareRun({ command: train('--rendezvous-timeout=1') });
    expect(await run.startNode(0).ended()).toBe(1);
    expect(run.output).toContain('[rank0]: rendezvous timeout after 1 s: no sign of rank 2, 3\n');
  });

  it('of a rank in a fault drill happens on the first attempt only', async () => {
    const command = train('--steps=20', '--fail-at-step=7', '--fail-rank=2');
    const first = await startRun({ command, env: { MUSTER_ATTEMPT: '1' } });
    expect(await first.ended()).toEqual([1, 1]);
    expect(first.output).toContain('[rank2]: failing at step 7, as --fail-at-step asks\n');
    const second = await startRun({ command, env: { MUSTER_ATTEMPT: '2' } });
    expect(await second.ended()).toEqual([0, 0]);
  });
});

describe('a peer', () => {
  it('of another attempt or job is refused, and a stranger too, while the right one gets in', async () => {
    const identity = { MUSTER_JOB_ID: 'job_b', MUSTER_ATTEMPT: '2' };
    const run = await prepareRun({ command: train('--steps=20'), ranksPerNode: 1, env: identity });
    const first = run.startNode(0);
    await waitFor('rank 0 listens', () => portIsOpen(run.port));
    await noted(run, '[rank0]: refused a connection from 127.0.0.1: it is no rank of this program\n');

    const stale = run.startNode(1, { MUSTER_ATTEMPT: '1' });
    expect(await stale.ended()).toBe(1);
    expect(stale.output).toContain(
      `refused by rank 0 at 127.0.0.1:${run.port}: its attempt is 1, ours is 2\n`,
    );
    const foreign = run.startNode(1, { MUSTER_JOB_ID: 'job_a' });
    expect(await foreign.ended()).toBe(1);
    expect(foreign.output).toContain(': its job is job_a, ours is job_b\n');

    expect(first.status).toBeNull();
    const right = run.startNode(1);
    expect(await right.ended()).toBe(0);
    expect(await first.ended()).toBe(0);
  });

  it('that is ahead of a dying rank 0 of the attempt before waits for the new one', async () => {
    const run = await prepareRun({ command: train('--steps=20'), ranksPerNode: 1 });
    const stale = run.startNode(0, { MUSTER_ATTEMPT: '1' });
    await waitFor('the stale rank 0 listens', () => portIsOpen(run.port));
    const peer = run.startNode(1, { MUSTER_ATTEMPT: '2' });
    await noted(run, 'its attempt is 2, ours is 1\n');
    stale.signalGroup('SIGKILL');
    await stale.ended();
    const fresh = run.startNode(0, { MUSTER_ATTEMPT: '2' });
    expect(await peer.ended()).toBe(0);
    expect(await fresh.ended()).toBe(0);
  });
});

describe('a checkpoint to resume from', () => {
  const saved = async (dir: string) => {
    const run = await startRun({
      command: train('--steps=5'),
      nodeCount: 1,
      env: { MUSTER_CHECKPOINT_DIR: dir },
    });
    expect(await run.ended()).toEqual([0]);
    return join(dir, 'step-000005.json');
  };
  const resumed = async (path: string, ...flags: readonly string[]) => {
    const run = await startRun({ command: train('--steps=10', ...flags), env: { MUSTER_RESUME_FROM: path } });
    return { statuses: await run.ended(), output: run.output };
  };

  it('is refused when it is damaged, with a line that names it', async () => {
    const dir = tempDir('train').path;
    const good = readFileSync(await saved(dir), 'utf8');
    const damaged = {
      'cut.json': good.slice(0, good.length / 2),
      'empty.json': '',
      'flipped.json': good.replace(
        /"state":"(.{40})(.)/,
        (_, before, at) => `"state":"${before}${at === 'A' ? 'B' : 'A'}`,
      ),
      'other.json': '{"epoch": 3}',
      'null.json': 'null',
    };
    for (const [name, content] of Object.entries(damaged)) {
      const path = join(dir, name);
      writeFileSync(path, content);
      const { statuses, output } = await resumed(path);
      expect(statuses, name).toEqual([1, 1]);
      expect(output).toContain(`[rank0]: corrupt checkpoint ${path}: `);
      expect(output).not.toContain('    at ');
    }
  });

  it('is refused when it is missing or of other flags', async () => {
    const dir = tempDir('train').path;
    const path = await saved(dir);
    const missing = await resumed(join(dir, 'nowhere.json'));
    expect(missing.statuses).toEqual([1, 1]);
    expect(missing.output).toContain('[rank0]: cannot resume: ENOENT');
    const other = await resumed(path, '--hidden=8');
    expect(other.statuses).toEqual([1, 1]);
    expect(other.output).toContain(`[rank0]: cannot resume: ${path} has --hidden 16, this run has 8\n`);
  });

  it('may be that of the finished run: then there is nothing left to do', async () => {
    const path = await saved(tempDir('train').path);
    const run = await startRun({
      command: train('--steps=5'),
      nodeCount: 1,
      env: { MUSTER_RESUME_FROM: path },
    });
    expect(await run.ended()).toEqual([0]);
    expect(run.lossSteps()).toEqual([]);
    expect(run.output).toContain('training complete: step 5 ');
  });

  it('cannot be saved to a place that is no directory, and the run fails saying so', async () => {
    const dir = tempDir('train').path;
    writeFileSync(join(dir, 'file'), '');
    const env = { MUSTER_CHECKPOINT_DIR: join(dir, 'file', 'checkpoints') };
    const run = await startRun({ command: train('--steps=5'), env });
    expect(await run.ended()).toEqual([1, 1]);
    expect(run.output).toContain('[rank0]: cannot save checkpoints: ENOTDIR');
  });
});

describe('by hand', () => {
  it('it runs alone without any environment', async () => {
    const node = new NodeRun(train('--steps=30'), { OMP_NUM_THREADS: undefined });
    expect(await node.ended()).toBe(0);
    expect(node.output).toContain('rank 0/1 on node 0 ready\n');
    expect(node.output).toContain('no checkpoints: MUSTER_CHECKPOINT_DIR is not set\n');
  });

  it.each([
    [{}, ['--stepz=3'], "Unknown option '--stepz' (--help lists the flags)"],
    [{}, ['--steps=0'], "--steps must be a number of at least 1, not '0'"],
    [{}, ['--batch=2.5'], "--batch must be a number of at least 1, not '2.5'"],
    [{ NNODES: 'two' }, [], "NNODES must be a number of at least 1, not 'two'"],
    [{ NNODES: '2', NODE_RANK: '2' }, [], "NODE_RANK must be a number from 0 to 1, not '2'"],
  ])('it refuses %j %j with status 2', async (env, flags, message) => {
    const node = new NodeRun(train(...flags), env);
    expect(await node.ended()).toBe(2);
    expect(node.output).toBe(`${message}\n`);
  });
});
