/** Jobs on several nodes: the environment every rank finds, and that the ranks start and end together. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { tempDir, waitFor } from '../support/services.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ nodes: 2, gpus: 2 });
});

const printEnvironment = [process.execPath, '-e', 'console.log(JSON.stringify(process.env))'];

async function environmentOf(jobId: string, rank: number): Promise<Record<string, string>> {
  return JSON.parse(await cluster.output(jobId, { rank })) as Record<string, string>;
}

/** Rank 0 listens at the meeting point; the other rank finds it there and both go. */
const meet = `
  const net = require('node:net');
  const { MASTER_ADDR: host, MASTER_PORT: port, NODE_RANK: rank } = process.env;
  if (rank === '0') {
    const server = net.createServer((peer) => peer.end('hello from rank 0', () => server.close()));
    server.listen(Number(port), host);
  } else {
    const dial = () => net.connect(Number(port), host)
      .on('error', () => setTimeout(dial, 50))
      .on('data', (text) => console.log(String(text)));
    dial();
  }`;

const idle = 'while :; do { sleep 1 & wait $!; } 2>/dev/null; done';

describe('the environment of every rank', () => {
  test('says where it is, where the others are and what it may use', async () => {
    const dir = join(tempDir('checkpoints').path, 'here');
    const spec = { name: 'contract', command: printEnvironment, env: { MINE: 'kept', NCCL_DEBUG: 'INFO' } };
    const jobId = await cluster.submit({
      ...spec,
      resources: { nodes: 2, gpus: 2 },
      checkpoint: { dir },
    });
    const job = await cluster.untilEnded(jobId);
    expect(job.state, JSON.stringify(job.cause)).toBe('succeeded');
    const attempt = job.attempts[0];
    const port = String(attempt?.masterPort);
    for (const rank of [0, 1]) {
      const place = {
        NNODES: '2',
        NODE_RANK: String(rank),
        NPROC_PER_NODE: '2',
        MASTER_ADDR: '127.0.0.1',
        MASTER_PORT: port,
      };
      const forTorchrun = Object.fromEntries(
        Object.entries(place).map(([name, value]) => [`PET_${name}`, value]),
      );
      const gpus = attempt?.tasks[rank]?.gpuUuids.join(',');
      const environment = await environmentOf(jobId, rank);
      expect(environment).toMatchObject({
        ...place,
        ...forTorchrun,
        WORLD_SIZE: '4',
        PET_RDZV_ID: `${jobId}.1`,
        MUSTER_JOB_ID: jobId,
        MUSTER_JOB_NAME: 'contract',
        MUSTER_ATTEMPT: '1',
        MUSTER_NODE_RANK: String(rank),
        MUSTER_NNODES: '2',
        MUSTER_CHECKPOINT_DIR: dir,
        MUSTER_RESUME_FROM: '',
        CUDA_VISIBLE_DEVICES: gpus,
        NVIDIA_VISIBLE_DEVICES: gpus,
        // `=`: this very interface, and none whose name begins like it.
        NCCL_SOCKET_IFNAME: '=lo',
        NCCL_DEBUG: 'INFO',
        MINE: 'kept',
      });
      expect(environment).not.toHaveProperty('MUSTER_JOIN_TOKEN');
      expect(environment).not.toHaveProperty('MUSTER_ARRAY_INDEX');
    }
  });

  test('yields to what the user set', async () => {
    const env = {
      MASTER_PORT: '29500',
      WORLD_SIZE: '77',
      PATH: '/usr/bin',
      MUSTER_RESUME_FROM: '/old/step-1',
    };
    const job = await cluster.run({ command: printEnvironment, env });
    expect(await environmentOf(job.id, 0)).toMatchObject(env);
  });

  test('hides every GPU from a job that asked for none', async () => {
    const job = await cluster.run({ command: printEnvironment });
    const environment = await environmentOf(job.id, 0);
    expect(environment).toMatchObject({
      CUDA_VISIBLE_DEVICES: '',
      NVIDIA_VISIBLE_DEVICES: 'void',
      WORLD_SIZE: '1',
    });
  });

  test('leads the ranks to each other', async () => {
    const job = await cluster.run({ command: [process.execPath, '-e', meet], resources: { nodes: 2 } });
    expect(job.state).toBe('succeeded');
    expect(await cluster.output(job.id, { rank: 1 })).toBe('hello from rank 0\n');
  });
});

test('jobs that run at the same time share neither GPUs nor meeting points', async () => {
  const spec = { command: `echo ready; ${idle}`, resources: { nodes: 2, gpus: 1 } };
  const ids = [await cluster.submit(spec), await cluster.submit(spec)];
  const jobs = await Promise.all(ids.map((id) => cluster.until(id, 'running')));
  const gpus = jobs.flatMap((job) => job.attempts[0]?.tasks.flatMap(({ gpuUuids }) => gpuUuids) ?? []);
  expect(new Set(gpus).size).toBe(4);
  expect(new Set(jobs.map((job) => job.attempts[0]?.masterPort)).size).toBe(2);
  const uses = (await cluster.api.listNodes()).flatMap(({ gpuUses }) => gpuUses);
  expect(uses.map(({ uuid, jobId }) => `${uuid} ${jobId}`).sort()).toEqual(
    jobs
      .flatMap(
        (job) =>
          job.attempts[0]?.tasks.flatMap((task) => task.gpuUuids.map((uuid) => `${uuid} ${job.id}`)) ?? [],
      )
      .sort(),
  );
  const third = await cluster.submit(spec);
  await waitFor('the third says why it waits', () => cluster.api.getJob(third), {
    until: ({ pending }) => pending?.kind === 'no_gpus_free',
  });
  await cluster.api.stopJobs([third, ...ids]);
  await Promise.all(ids.map((id) => cluster.untilEnded(id)));
});

describe('when one rank ends badly', () => {
  test('the others are stopped, with their grace, and all their processes are gone', async () => {
    const gate = join(tempDir('gate').path, 'open');
    const script = `if [ $NODE_RANK = 1 ]; then while [ ! -e ${gate} ]; do sleep 0.05; done; exit 7; fi
      trap 'echo saved' TERM; setsid sh -c 'trap "" TERM; exec sleep 1000' & echo ready; ${idle}`;
    const jobId = await cluster.submit({
      command: script,
      resources: { nodes: 2, gpus: 2 },
      stop_grace: '3s',
    });
    await cluster.untilOutput(jobId, 'ready\n', 0);
    writeFileSync(gate, '');
    const job = await cluster.untilEnded(jobId);
    const [first, second] = job.attempts[0]?.tasks ?? [];
    expect(job).toMatchObject({
      state: 'failed',
      cause: {
        kind: 'exit_code',
        message: `rank 1 on ${second?.node} exited with code 7`,
        nodeRank: 1,
        node: second?.node,
      },
    });
    expect(first?.exit).toMatchObject({ exitCode: null, signal: 'SIGKILL' });
    expect(second?.exit).toMatchObject({ exitCode: 7 });
    expect(await cluster.output(jobId, { rank: 0 })).toBe('ready\nsaved\n');
    expect(cluster.processesOf(jobId)).toEqual([]);
    expect((await cluster.api.listNodes()).flatMap(({ gpuUses }) => gpuUses)).toEqual([]);
  });

  test('a rank that is done already stays done', async () => {
    const gate = join(tempDir('gate').path, 'open');
    const script = `[ $NODE_RANK = 0 ] && exit 0; while [ ! -e ${gate} ]; do sleep 0.05; done; exit 2`;
    const jobId = await cluster.submit({ command: script, resources: { nodes: 2 } });
    await cluster.untilJob(
      jobId,
      'has a rank that is done',
      ({ attempts }) => attempts[0]?.tasks[0]?.state === 'ended',
    );
    writeFileSync(gate, '');
    const job = await cluster.untilEnded(jobId);
    expect(job.cause).toMatchObject({ kind: 'exit_code', nodeRank: 1 });
    expect(job.attempts[0]?.tasks.map(({ exit }) => exit?.exitCode)).toEqual([0, 2]);
  });

  test('and one cannot even be started, none goes on', async () => {
    const where = `test -e ${cluster.dataDir}/nowhere`;
    const job = await cluster.run({
      command: ['sh', '-c', `${where}; ${idle}`],
      resources: { nodes: 2 },
      workdir: '/none',
    });
    expect(job).toMatchObject({ state: 'failed', cause: { kind: 'command_not_found' } });
    expect(cluster.processesOf(job.id)).toEqual([]);
  });
});

test('stop reaches every rank', async () => {
  const script = `trap 'echo saved $NODE_RANK; exit 0' TERM; echo ready; ${idle}`;
  const jobId = await cluster.submit({ command: script, resources: { nodes: 2 } });
  for (const rank of [0, 1]) await cluster.untilOutput(jobId, 'ready\n', rank);
  await cluster.api.stopJobs([jobId]);
  expect((await cluster.untilEnded(jobId)).state).toBe('cancelled');
  for (const rank of [0, 1]) expect(await cluster.output(jobId, { rank })).toBe(`ready\nsaved ${rank}\n`);
});

test('a gang that does not fit as a whole does not begin', async () => {
  const alone = await cluster.submit({ command: `echo ready; ${idle}`, resources: { gpus: 2 } });
  await cluster.until(alone, 'running');
  const gang = await cluster.submit({ command: 'true', resources: { nodes: 2, gpus: 1 } });
  await waitFor('the gang waits', () => cluster.api.getJob(gang), {
    until: ({ state, pending }) => state === 'queued' && pending?.kind === 'no_gpus_free',
  });
  const explanation = await cluster.api.explainJob(gang);
  expect(explanation.summary).toContain(
    `${gang} is waiting for 2 nodes with 1 free GPU each (1 has them now; 2 of 4 GPUs in use`,
  );
  await cluster.api.stopJobs([alone]);
  expect(await cluster.untilEnded(gang)).toMatchObject({ state: 'succeeded' });
});

test('a gang that a node holds back goes back into the queue, and starts when the node is there again', async () => {
  const absent = cluster.agent(1);
  absent.pause();
  let jobId = '';
  try {
    const retry = { max_attempts: 1, backoff: { initial: '100ms', max: '100ms' } };
    jobId = await cluster.submit({ command: 'true', resources: { nodes: 2 }, retry });
    await cluster.until(jobId, 'starting');
    const back = await cluster.untilJob(jobId, 'is back', ({ state }) => state === 'queued');
    expect(back).toMatchObject({
      cause: { kind: 'node_lost', node: 'node-2' },
      attempts: [{ state: 'ended' }],
    });
  } finally {
    absent.resume();
  }
  const job = await cluster.untilEnded(jobId);
  expect(job).toMatchObject({ state: 'succeeded' });
  expect(job.attempts.map(({ cause }) => cause?.kind)).toEqual(['node_lost', undefined]);
});
