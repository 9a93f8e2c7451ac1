/** Closed from the first start: who may call what, and what is on disk, on every interface there is. */
import { randomBytes } from 'node:crypto';
import { cpSync, mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { musterService } from '@muster/common/wire/service';
import { beforeAll, describe, expect, test } from 'vitest';
import { credentialOfAgent, describeCallRules, targetOf } from '../support/callRules.ts';
import { type Cluster, startCluster } from '../support/cluster.ts';
import { bearerOf, callMethod, FakeAgent, nextMessage } from '../support/rawCalls.ts';
import { editStore } from '../support/storeEdit.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster({ nodes: 2 });
});

const idle = 'while :; do { sleep 1 & wait $!; } 2>/dev/null; done';

const debuggerPort = 9_229;

/** Sockets that listen on a TCP port, as the kernel reports them (proc(5): state 0A). */
function listenersOn(port: number): readonly string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((path) =>
    readFileSync(path, 'utf8')
      .split('\n')
      .filter((line) => {
        const [, local, , state] = line.trim().split(/\s+/);
        return local?.endsWith(suffix) === true && state === '0A';
      }),
  );
}

const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);

describe('without TLS, on loopback', () => {
  describeCallRules(() => cluster);
});

describe('the services that every gRPC tool knows', () => {
  test('health says SERVING, for all and for each', async () => {
    for (const service of ['', 'muster.v1.Muster', 'muster.v1.AgentHub']) {
      const request = Buffer.concat([Buffer.from([0x0a, service.length]), Buffer.from(service)]);
      const answer = await callMethod(
        targetOf(cluster),
        '/grpc.health.v1.Health/Check',
        bearerOf(cluster.adminToken),
        { request },
      );
      expect(answer).toEqual({ status: 'OK', message: Buffer.from([0x08, 0x01]) });
    }
  });

  test('reflection lists the services and describes their methods', async () => {
    const path = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';
    const ask = async (field: number, text: string) => {
      const request = Buffer.concat([Buffer.from([(field << 3) | 2, text.length]), Buffer.from(text)]);
      return (
        await callMethod(targetOf(cluster), path, bearerOf(cluster.adminToken), { request })
      ).message?.toString('latin1');
    };
    const services = await ask(7, '*');
    for (const name of ['muster.v1.Muster', 'muster.v1.AgentHub']) expect(services).toContain(name);
    const file = await ask(4, 'muster.v1.Muster');
    for (const method of Object.keys(musterService)) expect(file).toContain(method);
  });
});

// ---- Disk and network

test('secrets on disk are for their owner alone', async () => {
  const files = [join(cluster.dataDir, 'admin.token'), join(cluster.agentsDir, 'node-1', 'credential')];
  for (const path of files) expect(mode(path), path).toBe('600');
  for (const path of [cluster.dataDir, join(cluster.agentsDir, 'node-1')])
    expect(mode(path), path).toBe('700');
  const database = readFileSync(join(cluster.dataDir, 'muster.db'), 'latin1');
  for (const secret of [cluster.adminToken, credentialOfAgent(cluster, 'node-1').credential]) {
    expect(database).not.toContain(secret);
    for (const daemon of [cluster.coordinator, ...cluster.agents]) expect(daemon.log).not.toContain(secret);
  }
});

test('on loopback no CA is made', () => {
  expect(cluster.caCertificate).toBeNull();
});

test('a token is never sent to an address that is not on this machine', async () => {
  const { exitCode, stderr } = await cluster.muster(['jobs', '--addr', '192.0.2.1:7070'], {
    env: { MUSTER_TOKEN: 'x' },
  });
  expect(exitCode).not.toBe(0);
  expect(stderr).toContain('will not send a token to 192.0.2.1:7070');
});

// ---- Joining

describe('a join token', () => {
  const join_ = async (name: string, folder: string, token: string) => {
    const place = [
      '--data',
      join(cluster.agentsDir, folder),
      '--name',
      name,
      '--coordinator',
      cluster.address,
    ];
    return cluster.muster(['agent', ...place, '--gpus', '0', '--root-tasks', 'allow'], {
      env: { MUSTER_JOIN_TOKEN: token },
    });
  };

  test('lets one agent in, once', async () => {
    const { token } = await cluster.api.createJoinToken('guest');
    const guest = cluster.addAgent('guest', token);
    await guest.start();
    await cluster.untilOnline([guest]);
    const { exitCode, stderr } = await join_('guest', 'second-guest', token);
    expect(exitCode).not.toBe(0);
    expect(stderr).toContain('this join token was used already');
  });

  test('is bound to its name', async () => {
    const { token } = await cluster.api.createJoinToken('alice');
    const { exitCode, stderr } = await join_('mallory', 'mallory', token);
    expect(exitCode).not.toBe(0);
    expect(stderr).toContain('this join token is not for a node named "mallory"');
    await expect(cluster.api.getNode('mallory')).rejects.toMatchObject({ code: 'not_found' });
  });

  test('is not given out for a name that is taken', async () => {
    await expect(cluster.api.createJoinToken('node-1')).rejects.toMatchObject({ code: 'already_exists' });
  });

  test('expires', async () => {
    const { token, expiresAtMs } = await cluster.api.createJoinToken('late');
    expect(expiresAtMs - Date.now()).toBeLessThanOrEqual(15 * 60_000);
    await cluster.coordinator.stop();
    const expired = `update credentials set expires_at_ms = ? where subject = 'late'`;
    expect(editStore(cluster.dataDir, expired, Date.now() - 1)).toBe(1);
    await cluster.coordinator.start();
    const { exitCode, stderr } = await join_('late', 'late', token);
    expect(exitCode).not.toBe(0);
    expect(stderr).toContain('expired');
    await cluster.untilOnline();
  });

  test('is needed', async () => {
    const { exitCode, stderr } = await join_('nobody', 'nobody', '');
    expect(exitCode).not.toBe(0);
    expect(stderr).toContain('muster token create nobody');
  });
});

test('a second agent with the name and credential of the first is refused, and the first goes on', async () => {
  const jobId = await cluster.submit({ command: `echo ready; ${idle}` });
  await cluster.untilOutput(jobId, 'ready\n');
  const copy = join(cluster.agentsDir, 'copy-of-node-1');
  mkdirSync(copy, { mode: 0o700 });
  cpSync(join(cluster.agentsDir, 'node-1', 'credential'), join(copy, 'credential'));
  const place = ['--data', copy, '--name', 'node-1', '--coordinator', cluster.address];
  const second = cluster.startMuster(['agent', ...place, '--gpus', '0', '--root-tasks', 'allow']);
  // It keeps asking: an admin may say that this machine is the node (muster node rejoin).
  await second.untilPrinted('duplicate_identity');
  expect(second.stderr).toContain('muster node rejoin node-1');
  expect(await cluster.api.getNode('node-1')).toMatchObject({
    state: 'online',
    inventory: { gpus: { length: 2 } },
  });
  expect(await cluster.api.getJob(jobId)).toMatchObject({ state: 'running' });
  await cluster.api.stopJobs([jobId]);
  await cluster.untilEnded(jobId);
  second.signal('SIGTERM');
  await second.ended;
  rmSync(copy, { recursive: true });
});

test('SIGUSR1 opens no debugger in any process', async () => {
  const jobId = await cluster.submit({ command: `echo ready; ${idle}` });
  await cluster.untilOutput(jobId, 'ready\n');
  const guards = cluster.agents.map((agent) => cluster.guardPid(agent));
  const pids = [cluster.coordinator.pid, ...cluster.agents.map(({ pid }) => pid), ...guards].filter(
    (pid) => pid !== null,
  );
  expect(pids.length).toBeGreaterThan(3);
  for (const pid of pids) process.kill(pid, 'SIGUSR1');
  // Every one of them still runs: without all of them the job would not end.
  await cluster.api.stopJobs([jobId]);
  await cluster.untilEnded(jobId);
  await cluster.untilOnline();
  expect(listenersOn(debuggerPort)).toEqual([]);
});

test('two agents cannot share a data directory', async () => {
  const place = [
    '--data',
    join(cluster.agentsDir, 'node-1'),
    '--name',
    'node-1',
    '--coordinator',
    cluster.address,
  ];
  const { exitCode, stderr } = await cluster.muster(['agent', ...place, '--root-tasks', 'allow']);
  expect(exitCode).not.toBe(0);
  expect(stderr).toContain('another agent is using');
});

// ---- A node that was taken over

describe("an agent's credential gives no power over the tasks of another node", () => {
  let intruder: FakeAgent;
  beforeAll(async () => {
    const credential = `muster_agent_${randomBytes(32).toString('base64url')}`;
    const { token } = await cluster.api.createJoinToken('intruder');
    const joining = new FakeAgent(targetOf(cluster), token);
    await joining.join({ joinToken: token, nodeName: 'intruder', credential });
    joining.close();
    intruder = new FakeAgent(targetOf(cluster), credential);
    return () => intruder.close();
  });

  const exit = { exitCode: 0, signal: '', oomKilled: false, finishedAtMs: 1, statusLost: false, logBytes: 0 };

  test('to prepare, to report their end, or to learn of them', async () => {
    const jobId = await cluster.submit({ command: `echo ready; ${idle}` });
    await cluster.untilOutput(jobId, 'ready\n');
    const before = await cluster.until(jobId, 'running');
    const waiting = await cluster.submit({ command: 'echo mine', resources: { gpus: 64 } });
    const ended = { task: { jobId, attempt: 1, nodeRank: 0 }, state: 'TASK_STATE_ENDED', exit } as const;

    const session = intruder.session();
    session.write({
      hello: {
        protocolVersion: 2,
        instanceId: 'i',
        bootId: 'b',
        inventory: { cpus: 0, drivers: [] },
        observed: [ended],
      },
    });
    const { welcome } = await nextMessage(session);
    expect(welcome).toMatchObject({ nodeName: 'intruder', desired: [] });
    session.write({ report: ended });
    session.write({
      prepared: { task: { jobId: waiting, attempt: 1, nodeRank: 0 }, master: { addr: '192.0.2.1', port: 1 } },
    });
    const answered = nextMessage(session);
    session.write({ heartbeat: { seq: 1, sentBoottimeMs: 1, observed: [ended] } });
    await answered;
    session.end();
    expect(await cluster.api.getJob(jobId)).toEqual(before);
    expect(await cluster.api.getJob(waiting)).toMatchObject({ state: 'queued', attempts: [] });
    await cluster.api.stopJobs([jobId, waiting]);
    await cluster.untilEnded(jobId);
  });

  test('to write into their output', async () => {
    const jobId = await cluster.submit({ command: `echo mine; ${idle}` });
    await cluster.untilOutput(jobId, 'mine\n');
    const upload = intruder.uploadLogs();
    for (const offset of [0, 5]) {
      const answered = nextMessage(upload);
      upload.write({
        task: { jobId, attempt: 1, nodeRank: 0 },
        offset,
        data: Buffer.from('forged\n'),
        complete: offset > 0,
      });
      await answered;
    }
    upload.end();
    await cluster.api.stopJobs([jobId]);
    await cluster.untilEnded(jobId);
    expect(await cluster.output(jobId)).toBe('mine\n');
  });
});
