/** Clocks that are wrong, and clocks that are set while a cluster runs or between two runs. */
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { seededChance } from '../support/chance.ts';
import { startCluster } from '../support/cluster.ts';
import { stablePort } from '../support/places.ts';
import { waitFor } from '../support/services.ts';
import { trialsOf } from '../support/trials.ts';

const dayMs = 86_400_000;

test('nodes whose clocks are a day ahead or behind join over TLS, say so, and run jobs in the time of the coordinator', async () => {
  const aheadMs = { 'node-1': dayMs, 'node-2': -dayMs } as Readonly<Record<string, number>>;
  const beganMs = Date.now();
  const cluster = await startCluster({
    nodes: 2,
    coordinatorFlags: ['--listen', `0.0.0.0:${await stablePort()}`],
    clockAheadMs: (title) => aheadMs[title] ?? 0,
  });
  await waitFor('both say that their clocks are wrong', async () => {
    const nodes = await cluster.api.listNodes();
    return nodes.every(({ conditions }) => conditions.some(({ kind }) => kind === 'clock_skew'));
  });
  const job = await cluster.run({ command: 'date +%s', resources: { nodes: 2 } });
  expect(job).toMatchObject({ state: 'succeeded' });
  expect(job.endedAtMs).toBeGreaterThanOrEqual(beganMs);
  expect(job.endedAtMs).toBeLessThanOrEqual(Date.now());
});

test('a cluster whose clock is suddenly three weeks ahead goes on, and an admin who accepts the clock ends what has expired', async () => {
  let aheadMs = -21 * dayMs;
  const cluster = await startCluster({
    nodes: 2,
    coordinatorFlags: ['--listen', `0.0.0.0:${await stablePort()}`],
    clockAheadMs: () => aheadMs,
    expectedErrors: /certificate of node node-\d expired on/,
  });
  const made = async (...words: readonly string[]) => {
    const { exitCode, stdout, stderr } = await cluster.muster(words);
    expect(exitCode, stderr).toBe(0);
    return stdout.trim();
  };
  await made('user', 'add', 'ada', '--no-login');
  const token = await made('token', 'issue', 'long', '--user', 'ada');
  const shortToken = await made('token', 'issue', 'short', '--user', 'ada', '--expires', '7d');
  const [code, joinToken] = [await made('user', 'code', 'ada'), await made('token', 'create', 'node-3')];
  const running = await cluster.submit({ command: 'echo began; exec sleep 100000' });
  await cluster.untilOutput(running, 'began\n');
  const daemons = [cluster.coordinator, ...cluster.agents];
  for (const daemon of daemons.toReversed()) await daemon.stop();

  aheadMs = 0;
  for (const daemon of daemons) await daemon.start();
  await cluster.untilOnline();
  expect((await cluster.api.getCluster()).clockProblem).toMatch(/^clock_stepped: .* is 21d ahead of/);
  expect((await cluster.muster(['nodes'])).stderr).toContain('muster clock accept');
  expect(await cluster.api.getJob(running)).toMatchObject({ state: 'running', attempts: { length: 1 } });
  const nodes = { command: 'true', resources: { nodes: 2 } };
  expect(await cluster.run(nodes)).toMatchObject({ state: 'succeeded' });

  const [first, second] = cluster.agents;
  if (first === undefined || second === undefined) expect.fail('there are two agents');
  // The one without the task: the other's credential is renewed over its open session.
  const holder = (await cluster.api.getJob(running)).attempts[0]?.tasks[0]?.node;
  const away = first.options.title === holder ? second : first;
  await away.stop();
  expect(await made('clock', 'accept')).toMatch(/Difference +none/);
  expect((await cluster.api.getCluster()).clockProblem).toBe('');
  await away.start();
  const { title } = away.options;
  const remedy = `the certificate of node ${title} expired on .*: create a token with \`muster token create ${title} --replace\``;
  await waitFor(`${title} says why`, () => away.log, { until: (log) => new RegExp(remedy).test(log) });
  // As docs/operations.md tells.
  await away.stop();
  await cluster.letJoinAnew(away);
  await away.start();
  await cluster.untilOnline();
  expect(await cluster.api.getJob(running)).toMatchObject({ state: 'running', attempts: { length: 1 } });
  expect(await cluster.run(nodes)).toMatchObject({ state: 'succeeded' });
  await cluster.api.stopJobs([running]);
  await cluster.untilEnded(running);

  const jobsOf = (ofUser: string) => cluster.muster(['jobs'], { env: { MUSTER_TOKEN: ofUser } });
  expect((await jobsOf(token)).exitCode).toBe(0);
  const { stderr } = await jobsOf(shortToken);
  expect(stderr).toMatch(
    /the credential user:ada:\w+ has expired: it was valid until .* the clock of the coordinator/,
  );
  expect(stderr).toContain('muster token issue LABEL --user NAME');
  const login = await cluster.muster(['login', cluster.address], { stdin: code });
  expect(login.stderr).toContain('expired');
  expect(login.stderr).toContain('muster user code NAME');
  const place = ['--data', join(cluster.workDir, 'node-3'), '--coordinator', cluster.address];
  const third = await cluster.muster(['agent', '--name', 'node-3', '--metrics', 'off', ...place], {
    env: { MUSTER_JOIN_TOKEN: joinToken },
  });
  expect(third.stderr).toContain('expired');
  expect(third.stderr).toContain('muster token create node-3');
});

/** Steps of one wall clock, in the order in which they are made; 0 is the right time again. */
const stepsMs = [4 * 3_600_000, 0, -4 * 3_600_000, 400 * dayMs, 0, 1_000 - 30 * dayMs];

/** Trials after the first, with random steps; MUSTER_TEST_SEED repeats them. */
const randomTrials = trialsOf(49, 0);

/** Prints its own length by CLOCK_BOOTTIME, so that the books of the coordinator can be compared with it. */
const measured = (gate: string) =>
  `read from _ < /proc/uptime; echo began; until [ -e ${gate} ]; do sleep 0.05; done; read to _ < /proc/uptime; echo "from $from to $to"`;

test('steps of wall clocks, with a restart between them, change no run time, cost, token budget or sweep', async () => {
  await requireSteady(stepsMs, [0, 4 * 3_600_000, 0, -dayMs, 0, 400 * dayMs]);
  const chance = seededChance();
  const sign = () => (chance.fraction() < 0.5 ? -1 : 1);
  const anyStep = () => Math.round(sign() * 1_000 * (400 * 86_400) ** chance.fraction());
  for (let trial = 0; trial < randomTrials; trial += 1) {
    const steps = () => stepsMs.map(() => (chance.fraction() < 0.3 ? 0 : anyStep()));
    await requireSteady(steps(), steps());
  }
});

/** @param stepsOfAgent made together with those of the coordinator, one by one */
async function requireSteady(
  stepsOfCoordinator: readonly number[],
  stepsOfAgent: readonly number[],
): Promise<void> {
  const cluster = await startCluster({
    gpus: 8,
    settableClocks: true,
    coordinatorFlags: ['--prices', 'node:node-1=3600'],
  });
  const beganMs = performance.now();
  const gate = join(cluster.workDir, 'gate');
  onTestFinished(() => writeFileSync(gate, ''));
  const one = { resources: { gpus: 1 } };
  const file = join(cluster.workDir, 'sweep.json');
  writeFileSync(
    file,
    JSON.stringify({
      name: 'timed',
      sampler: 'grid',
      parallel: 1,
      objective: { metric: 'train_loss' },
      budget: { wall_clock: '1h' },
      parameters: { loss: [0.3, 0.2, 0.1] },
      job: {
        command: `until [ -e ${gate} ]; do sleep 0.05; done; echo "iter 1: loss {loss}, time 4.7ms"`,
        ...one,
      },
    }),
  );
  const sweep = (await cluster.muster(['sweep', '-f', file])).stdout.trim();
  expect((await cluster.muster(['user', 'add', 'ada', '--no-login'])).exitCode).toBe(0);
  const issued = await cluster.muster(['token', 'issue', 'limited', '--user', 'ada', '--gpu-hours', '2']);
  expect(issued.exitCode, issued.stderr).toBe(0);
  const client = cluster.newClient(issued.stdout.trim());
  const { jobIds } = await client.submit({
    specJson: JSON.stringify({ command: measured(gate), ...one }),
    requestId: randomUUID(),
  });
  const [budgeted = ''] = jobIds;
  const watched = await cluster.submit({ command: measured(gate), ...one });
  for (const id of [budgeted, watched]) await cluster.untilOutput(id, 'began\n');

  for (const [index, stepMs] of stepsOfCoordinator.entries()) {
    cluster.setClock('coordinator', stepMs);
    cluster.setClock('node-1', stepsOfAgent[index] ?? 0);
    // A whole job under this clock, so that every reconciler has had its turn.
    expect(await cluster.run({ command: 'sleep 1.2', ...one })).toMatchObject({ state: 'succeeded' });
    if (index === 2 || index === 4) await cluster.coordinator.restart();
  }
  const shown = await cluster.muster(['job', watched]);
  expect(shown.stdout).toMatch(/running for [\d.]+ (s|min)/);
  writeFileSync(gate, '');

  const elapsedMs = () => performance.now() - beganMs;
  for (const id of [budgeted, watched]) {
    const job = await cluster.untilEnded(id);
    expect(job).toMatchObject({ state: 'succeeded', attempts: { length: 1 } });
    const [, from = 0, to = 0] = /from (\S+) to (\S+)/.exec(await cluster.output(id)) ?? [];
    const ranMs = (Number(to) - Number(from)) * 1_000;
    const [attempt] = job.attempts;
    expect(Math.abs((attempt?.endedAtMs ?? 0) - (attempt?.runningAtMs ?? 0) - ranMs)).toBeLessThan(1_000);
    expect(job.costUsd).toBeGreaterThanOrEqual(ranMs / 1_000 - 1);
    expect(job.costUsd).toBeLessThanOrEqual(elapsedMs() / 1_000);
    const held = job.ledger.filter(({ kind }) => kind !== 'queued');
    const seconds = held.reduce((sum, { gpuSeconds }) => sum + gpuSeconds, 0);
    expect(seconds).toBeLessThanOrEqual(elapsedMs() / 1_000);
  }
  await waitFor('the sweep has ended', async () => (await cluster.api.getSweep(sweep)).state !== 'running');
  const { state, complete, use } = await cluster.api.getSweep(sweep);
  expect({ state, complete }).toEqual({ state: 'done', complete: 3 });
  expect((use?.wallClockHours ?? 0) * 3_600_000).toBeLessThanOrEqual(elapsedMs());
  // The budget has room still.
  const more = { specJson: JSON.stringify({ command: 'true', ...one }), requestId: randomUUID() };
  await cluster.untilEnded((await client.submit(more)).jobIds[0] ?? '');
  client.close();
  const listed = await cluster.muster(['jobs', '--all']);
  expect(listed.stdout).not.toMatch(/\d (h|d)\b/);
}
