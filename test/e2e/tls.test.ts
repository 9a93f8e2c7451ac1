/**
 * A coordinator that agents on other machines can reach. It listens on every address; the tests connect through loopback, where
 * TLS is the same: once there is a CA nothing is sent without TLS, not on this machine either.
 */
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { connect as connectPlain } from 'node:http2';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { endAllNaming } from '../../scripts/processes.mjs';
import { describeCallRules, targetOf } from '../support/callRules.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { MusterCommand } from '../support/command.ts';
import { confirmDevice, type Issuer, issuerClientId, startIssuer } from '../support/issuer.ts';
import { stablePort } from '../support/places.ts';
import { bearerOf, callMethod } from '../support/rawCalls.ts';
import { tempDir, waitFor } from '../support/services.ts';

let cluster: Cluster;
let issuer: Issuer;
let port: number;
/** More flags of the next agents to start. */
let agentFlags: readonly string[] = [];
beforeAll(async () => {
  port = await stablePort();
  issuer = await startIssuer();
  const oidc = [
    '--oidc-issuer',
    issuer.url,
    '--oidc-client-id',
    issuerClientId,
    '--oidc-create-role',
    'viewer',
  ];
  const flags = ['--listen', `0.0.0.0:${port}`, '--advertise', 'coordinator.test', ...oidc];
  cluster = await startCluster({
    coordinatorFlags: flags,
    agentFlags: () => agentFlags,
    // What an agent reports whose CA was lost.
    expectedErrors: /no certificate of a node that this cluster has made/,
  });
});
afterAll(() => issuer.close());

const idle = 'while :; do { sleep 1 & wait $!; } 2>/dev/null; done';
const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);
const caFile = () => join(cluster.dataDir, 'tls/ca.pem');

/** `muster agent` with a data directory of its own, until it ends. */
function agent(
  name: string,
  env: Readonly<Record<string, string>>,
  { folder = name, coordinator = cluster.address }: { folder?: string; coordinator?: string } = {},
) {
  const place = ['--data', join(cluster.agentsDir, folder), '--name', name, '--coordinator', coordinator];
  return cluster.muster(['agent', ...place, '--gpus', '0', '--metrics', 'off', '--root-tasks', 'allow'], {
    env,
  });
}

// ---- What works

test('an agent joins with nothing but a token, and runs jobs', async () => {
  const job = await cluster.run({ command: 'echo by TLS', resources: { gpus: 1 } });
  expect(job.state).toBe('succeeded');
  expect(await cluster.output(job.id)).toBe('by TLS\n');
});

test('the agent keeps the CA, its key and its certificate in one file', () => {
  const path = join(cluster.agentsDir, 'node-1', 'credential');
  expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({
    joined: true,
    caCertificate: cluster.caCertificate,
    credential: expect.stringMatching(/^-----BEGIN PRIVATE KEY-----/),
    certificate: expect.stringMatching(/^-----BEGIN CERTIFICATE-----/),
  });
  expect(mode(path)).toBe('600');
});

test('jobs and agents go on over a restart of the coordinator, whose CA stays', async () => {
  const before = cluster.caCertificate;
  const jobId = await cluster.submit({ command: `echo ready; ${idle}` });
  await cluster.untilOutput(jobId, 'ready\n');
  await cluster.coordinator.stop();
  await cluster.coordinator.start();
  await cluster.untilOnline();
  expect(cluster.caCertificate).toBe(before);
  expect(await cluster.api.getJob(jobId)).toMatchObject({ state: 'running', attempts: { length: 1 } });
  await cluster.api.stopJobs([jobId]);
  await cluster.untilEnded(jobId);
});

test('the command that `token create` prints joins as it stands', async () => {
  const { stdout, stderr, exitCode } = await cluster.muster(['token', 'create', 'typed']);
  expect(exitCode, stderr).toBe(0);
  const command = /^ {2}muster agent (.*) --join-token-file -$/m.exec(stderr);
  expect(command?.[1]).toBe(`--data muster-typed --name typed --coordinator coordinator.test:${port}`);
  // The name is not one that this machine knows; everything else is taken as printed.
  const typed = cluster.addAgent('typed', stdout.trim());
  await typed.start();
  await cluster.untilOnline([typed]);
});

test('clients find CA and token where the coordinator left them, or by flag and variable', async () => {
  const nodes = ['nodes', '-o', 'json'];
  expect((await cluster.muster(nodes)).exitCode).toBe(0);
  const named = { MUSTER_DATA: '', MUSTER_TOKEN: cluster.adminToken, MUSTER_ADDR: `localhost:${port}` };
  expect((await cluster.muster(nodes, { env: { ...named, MUSTER_CA: caFile() } })).exitCode).toBe(0);
  expect((await cluster.muster([...nodes, '--ca', caFile()], { env: named })).exitCode).toBe(0);
});

// ---- What is refused

describe('over TLS', () => {
  describeCallRules(() => cluster);
});

describe('nothing is reported', () => {
  test('without TLS: gRPC gets no answer, not even to the admin token', async () => {
    const path = '/muster.v1.Muster/GetCluster';
    const plain = await callMethod(
      { address: cluster.address, caCertificate: null },
      path,
      bearerOf(cluster.adminToken),
    );
    expect(plain).toMatchObject({ status: expect.stringMatching(/^UNAVAILABLE/), message: null });
    const encrypted = callMethod(targetOf(cluster), path, bearerOf(cluster.adminToken));
    expect(await encrypted).toMatchObject({ status: 'OK' });
  });

  test('without TLS: HTTP/2 gets no frame', async () => {
    const session = connectPlain(`http://${cluster.address}`);
    const ended = new Promise<string>((resolve) => {
      session.on('remoteSettings', () => resolve('answered'));
      session.on('error', () => resolve('refused'));
      session.on('close', () => resolve('refused'));
    });
    expect(await ended).toBe('refused');
    session.destroy();
  });

  test.each(['TLSv1.2', 'TLSv1.1'] as const)('by %s', async (maxVersion) => {
    const options = {
      host: '127.0.0.1',
      port,
      rejectUnauthorized: false,
      minVersion: 'TLSv1',
      maxVersion,
    } as const;
    const ended = new Promise<string>((resolve) => {
      const socket = connect({ ...options, ciphers: 'DEFAULT@SECLEVEL=0', ALPNProtocols: ['h2'] });
      socket.on('secureConnect', () => resolve('connected'));
      socket.on('error', (error) => resolve(error.message));
    });
    expect(await ended).toMatch(/protocol version|unsupported protocol|no protocols available/);
  });

  test('to a client that trusts another CA, or none', async () => {
    const foreign = join(cluster.workDir, 'foreign.pem');
    const other = await startCluster({ nodes: 0, coordinatorFlags: ['--listen', '0.0.0.0:0'] });
    writeFileSync(foreign, other.caCertificate ?? '');
    const env = { MUSTER_ADDR: cluster.address, MUSTER_TOKEN: cluster.adminToken, MUSTER_DATA: '' };
    const distrusting = await cluster.muster(['nodes', '--ca', foreign], { env });
    expect(distrusting.stderr).toContain('is not the coordinator whose CA is trusted here');
    expect(distrusting.exitCode).toBe(6);
    const without = await cluster.muster(['nodes'], { env });
    expect(without.stderr).toContain('a coordinator with TLS, whose CA is required');
    expect(without.exitCode).toBe(5);
  });
});

test('an address of another machine without a CA is refused before anything is sent', async () => {
  const env = { MUSTER_ADDR: '192.0.2.1:7070', MUSTER_TOKEN: cluster.adminToken, MUSTER_DATA: '' };
  const { exitCode, stderr } = await cluster.muster(['nodes'], { env });
  expect(exitCode).toBe(6);
  expect(stderr).toMatch(/will not send a token to 192\.0\.2\.1:7070.*\n.*tls\/ca\.pem/);
});

test('a user logs in with nothing but a code, and their role and their login hold until they are removed', async () => {
  const home = tempDir('home').path;
  const env = { HOME: home, XDG_CONFIG_HOME: '', MUSTER_DATA: '', MUSTER_ADDR: '', MUSTER_TOKEN: '' };
  const added = await cluster.muster(['user', 'add', 'vera', '--role', 'viewer']);
  expect(added.exitCode, added.stderr).toBe(0);
  const codeFile = join(home, 'code');
  writeFileSync(codeFile, added.stdout, { mode: 0o600 });
  const impostor = await startCluster({ nodes: 0, coordinatorFlags: ['--listen', '0.0.0.0:0'] });
  const misled = await cluster.muster(['login', impostor.address, '--code-file', codeFile], { env });
  expect(misled.stderr).toContain('is not the coordinator that issued this token');
  const login = await cluster.muster(['login', `localhost:${port}`, '--code-file', codeFile], { env });
  expect(login.exitCode, login.stderr).toBe(0);
  expect(login.stdout).toContain('as vera (viewer; default)');
  expect(mode(join(home, '.config/muster/contexts.json'))).toBe('600');
  expect((await cluster.muster(['nodes'], { env })).stdout).toContain('node-1');
  const refused = await cluster.muster(['node', 'drain', 'node-1'], { env });
  expect(refused.stderr).toContain('role viewer');
  expect(refused.exitCode).toBe(6);
  expect((await cluster.muster(['user', 'remove', 'vera'])).exitCode).toBe(0);
  expect((await cluster.muster(['nodes'], { env })).exitCode).toBe(6);
});

test('a user whom nobody has added logs in with a browser, at the issuer that the coordinator knows', async () => {
  const home = tempDir('home').path;
  const env = { HOME: home, XDG_CONFIG_HOME: '', MUSTER_DATA: '', MUSTER_ADDR: '', MUSTER_TOKEN: '' };
  const login = cluster.startMuster(['login', `localhost:${port}`, '--ca', caFile()], {
    env: { ...process.env, ...env },
    cwd: home,
  });
  await login.untilPrinted('Waiting for that');
  await confirmDevice(/http:\S+/.exec(login.stderr)?.[0] ?? '', 'wanda');
  const { exitCode, stdout, stderr } = await login.ended;
  expect(exitCode, stderr).toBe(0);
  expect(stdout).toContain('as wanda (viewer; default)');
  expect((await cluster.muster(['nodes'], { env })).stdout).toContain('node-1');
  expect((await cluster.muster(['token'], { env })).stdout).toMatch(/^user:wanda:\S+ +user +wanda/m);
  expect((await cluster.muster(['token', 'revoke', 'user:wanda'])).exitCode).toBe(0);
  expect((await cluster.muster(['nodes'], { env })).exitCode).toBe(6);
});

describe('a join token', () => {
  test('is kept from a coordinator with another CA, and is good afterwards', async () => {
    const { token } = await cluster.api.createJoinToken('careful');
    const impostor = await startCluster({ nodes: 0, coordinatorFlags: ['--listen', '0.0.0.0:0'] });
    const misled = await agent('careful', { MUSTER_JOIN_TOKEN: token }, { coordinator: impostor.address });
    expect(misled.exitCode).not.toBe(0);
    expect(misled.stderr).toContain('is not the coordinator that issued this token');
    expect(impostor.coordinator.log).not.toContain(token);

    const careful = cluster.addAgent('careful', token);
    await careful.start();
    await cluster.untilOnline([careful]);
  });

  test('is useless to whoever steals it after its use', async () => {
    const { token } = await cluster.api.createJoinToken('victim');
    const victim = cluster.addAgent('victim', token);
    await victim.start();
    await cluster.untilOnline([victim]);
    const thief = await agent('victim', { MUSTER_JOIN_TOKEN: token }, { folder: 'thief' });
    expect(thief.exitCode).not.toBe(0);
    expect(thief.stderr).toContain('this join token was used already');
    expect(await cluster.api.getNode('victim')).toMatchObject({ state: 'online' });
  });

  test('without its pin is worth nothing', async () => {
    const { token } = await cluster.api.createJoinToken('shortened');
    const [secret = ''] = token.split('.');
    const withCa = { MUSTER_JOIN_TOKEN: secret, MUSTER_CA: caFile() };
    const { exitCode, stderr } = await agent('shortened', withCa);
    expect(exitCode).not.toBe(0);
    expect(stderr).toContain('the token is unknown to this coordinator');
  });
});

test('secrets of TLS are for their owner alone, and in no log', () => {
  expect(mode(join(cluster.dataDir, 'tls'))).toBe('700');
  expect(mode(join(cluster.dataDir, 'tls/ca.key'))).toBe('600');
  const [, firstLine = ''] = readFileSync(join(cluster.dataDir, 'tls/ca.key'), 'utf8').split('\n');
  for (const daemon of cluster.daemons) expect(daemon.log).not.toContain(firstLine);
});

test('pages for Prometheus stay on loopback', async () => {
  const { http } = JSON.parse(readFileSync(join(cluster.dataDir, 'connection.json'), 'utf8')) as {
    http: string;
  };
  expect(http).toMatch(/^127\.0\.0\.1:/);
  const place = ['--data', join(cluster.workDir, 'public'), '--listen', '127.0.0.1:0'];
  const { exitCode, stderr } = await cluster.muster(['coordinator', ...place, '--http', '0.0.0.0:0']);
  expect(exitCode).not.toBe(0);
  expect(stderr).toContain('serves on this machine only');
});

test('after the CA was lost, agents stay away until each has joined by a new token', async () => {
  const old = readFileSync(caFile(), 'utf8');
  await cluster.coordinator.stop();
  rmSync(join(cluster.dataDir, 'tls'), { recursive: true });
  await cluster.coordinator.start();
  expect(cluster.caCertificate).not.toBe(old);

  // 1. Anyone who knows the old one alone refuses the new, and reports why.
  const node = cluster.agent(0);
  await node.restart();
  await waitFor('the agent says why', () => node.log, {
    until: (log) =>
      /no connection to the coordinator/.test(log) && /its certificate comes from another CA/.test(log),
  });
  expect(await cluster.api.getNode('node-1')).toMatchObject({ state: 'silent' });

  // 2. The new CA alone is not enough: the certificates of nodes came from the old one.
  agentFlags = ['--ca', caFile()];
  await node.restart();
  await waitFor('the agent says why', () => node.log, {
    until: (log) => /no certificate of a node/.test(log),
  });
  agentFlags = [];

  // 3. By a token that pins the new CA each joins again, with its name, its data directory and its tasks.
  for (const each of cluster.agents) {
    await cluster.letJoinAnew(each);
    await each.restart();
  }
  await cluster.untilOnline();
  await node.restart();
  await cluster.untilOnline([node]);
});

test('`muster up` serves other machines when it is asked to, and its own agents come along', async () => {
  const home = tempDir('up-tls').path;
  const env = { PATH: process.env.PATH, HOME: home, TMPDIR: process.env.TMPDIR };
  const start = (...args: readonly string[]) => new MusterCommand(args, { env, cwd: home });
  const flags = ['--data', join(home, 'data'), '--gpus', '1', '--port', '0', '--http', 'off'];
  onTestFinished(() => endAllNaming(home, 2_000));

  // Joined before there was TLS, found again with it, and then on loopback too.
  for (const more of [[], ['--listen', '0.0.0.0'], []]) {
    const up = start('up', ...flags, ...more);
    await up.untilPrinted('1 node, 1 simulated GPU');
    const job = await start('submit', '--follow', '--gpus', '1', '--', 'echo', 'hello').ended;
    expect(job.stdout, job.stderr).toBe('hello\n');
    up.signal('SIGINT');
    expect((await up.ended).exitCode).toBe(0);
  }
});
