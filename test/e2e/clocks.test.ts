/** Clocks that are wrong, and clocks that are set while a cluster runs or between two runs. */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startCluster } from '../support/cluster.ts';
import { stablePort } from '../support/places.ts';
import { waitFor } from '../support/services.ts';

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
