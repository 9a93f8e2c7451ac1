import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { MusterError } from '@muster/common/errors';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { type S3Server, s3Bucket, s3Key, startS3Server } from '../../../../test/support/s3Server.ts';
import { digestOfBytes } from '../artifacts/fileList.ts';
import { openArtifactStore, storeKeyOf } from '../artifacts/store.ts';
import { exited } from '../drivers/fakeDriver.ts';
import { aKey, aTask, forget, prepare, start, stop, type TestAgent, TestNode } from './managerFixture.ts';

let server: S3Server;
beforeAll(async () => {
  server = await startS3Server();
});
afterEach(() => server.intercept(null));
afterAll(() => server.close());

const limits = { artifactLimits: { inputsMs: 300, outputsMs: 300 } };
const content = Buffer.from('the data');

function specWith(
  artifacts: Readonly<Record<string, unknown>>,
  more: Readonly<Record<string, unknown>> = {},
) {
  return {
    ...more,
    artifacts: { url: `s3://${s3Bucket}/run/train-1`, endpoint: server.endpoint, secret: 's3', ...artifacts },
  };
}

function input(changes: Readonly<Record<string, unknown>> = {}) {
  const url = `s3://${s3Bucket}/made/data.txt`;
  return {
    name: 'data',
    type: 'file',
    url,
    digest: digestOfBytes(content),
    path: 'data/0/data.txt',
    ...changes,
  };
}

const output = { name: 'model', type: 'file', path: 'model.pt' };

async function opened() {
  const { endpoint } = server;
  const spec = { url: `s3://${s3Bucket}`, endpoint, region: 'us-east-1', pathStyle: true, secret: 's3' };
  return openArtifactStore(spec, storeKeyOf(Buffer.from(s3Key), spec));
}

async function keep(key: string, bytes: Buffer): Promise<void> {
  await (await opened()).put(key, bytes, new AbortController().signal);
}

async function kept(key: string): Promise<string> {
  let text = '';
  for await (const piece of await (await opened()).get(key, 0, new AbortController().signal))
    text += Buffer.from(piece).toString();
  return text;
}

function aNode(): TestNode {
  const node = new TestNode();
  node.secretValues = [{ name: 's3', value: Buffer.from(s3Key) }];
  return node;
}

const placeOn = (node: TestNode, ...path: readonly string[]) =>
  join(node.root, 'tasks', aKey, 'artifacts', ...path);

async function endOf(agent: TestAgent) {
  await vi.waitFor(() => expect(agent.sent.at(-1)).toMatch('ended'), 20_000);
  return agent.reports.at(-1)?.exit ?? null;
}

describe('inputs and outputs in a store', () => {
  test('are there before the program starts, and kept before it has ended, without the key', async () => {
    await keep('made/data.txt', content);
    const node = aNode();
    const agent = await node.agent(limits);
    const command = ['sh', '-c', 'cat {muster_artifacts}/inputs/data/0/data.txt'];
    const env = { MUSTER_OUTPUT_model: '{muster_artifacts}/outputs/model.pt' };
    agent.order(prepare(specWith({ inputs: [input()], outputs: [output] }, { command, env })));
    await vi.waitFor(() => expect(agent.sent.at(-1)).toMatch('prepared'), 20_000);
    const path = placeOn(node, 'inputs', 'data/0/data.txt');
    expect(readFileSync(path, 'utf8')).toBe('the data');
    expect(statSync(path).mode & 0o222).toBe(0);
    expect(statSync(placeOn(node, 'inputs', 'data')).mode & 0o222).toBe(0);

    agent.order(start);
    await agent.sends('running');
    const launch = node.process.launches[0];
    expect(launch?.command.at(-1)).toBe(`cat ${path}`);
    expect(launch?.env['MUSTER_OUTPUT_model']).toBe(placeOn(node, 'outputs', 'model.pt'));
    expect(JSON.stringify(launch)).not.toContain('S3RVER');
    expect(node.secrets.has(aKey)).toBe(false);
    writeFileSync(placeOn(node, 'outputs', 'model.pt'), 'weights');
    node.process.end(aKey, exited(0));
    expect(await endOf(agent)).toMatchObject({
      exitCode: 0,
      failure: null,
      artifacts: [{ name: 'model', bytes: 7, digest: digestOfBytes(Buffer.from('weights')) }],
    });
    expect(await kept(`run/train-1/${aTask.jobId}-1/model.pt`)).toBe('weights');
    agent.order(forget);
    agent.manager.setUploaded(aTask);
    await vi.waitFor(() => expect(agent.knows()).toEqual([]));
    expect(existsSync(placeOn(node))).toBe(false);
  });

  test('are fetched and kept again by a later agent where one was killed', async () => {
    await keep('made/data.txt', content);
    const node = aNode();
    const killed = await node.agent(limits);
    server.intercept((method, url) => (method === 'GET' && url.includes('data.txt') ? 'drop' : 'serve'));
    killed.order(prepare(specWith({ inputs: [input()], outputs: [output] })));
    await vi.waitFor(() => expect(server.count('GET')).toBeGreaterThan(0), 20_000);
    const second = await node.restart(killed, limits);
    server.intercept(null);
    second.order(prepare(specWith({ inputs: [input()], outputs: [output] })));
    await vi.waitFor(() => expect(second.sent.at(-1)).toMatch('prepared'), 20_000);
    second.order(start);
    await second.sends('running');
    const fetched = server.count('GET');
    writeFileSync(placeOn(node, 'outputs', 'model.pt'), 'weights');

    // This agent is gone before anything of the output has arrived.
    const asked = Promise.withResolvers<void>();
    server.intercept((method) => {
      if (method === 'PUT') asked.resolve();
      return method === 'PUT' ? 'drop' : 'serve';
    });
    node.process.end(aKey, exited(0));
    await asked.promise;
    const third = await node.restart(second, limits);
    server.intercept(null);
    third.order(start);
    expect((await endOf(third))?.artifacts).toHaveLength(1);
    expect(await kept(`run/train-1/${aTask.jobId}-1/model.pt`)).toBe('weights');
    expect(server.count('GET')).toBe(fetched + 1);
  });

  test('are waited for while the coordinator, which has the key, is away', async () => {
    const node = aNode();
    let isAway = false;
    let asked = 0;
    const agent = await node.agent({
      ...limits,
      readSecrets: async () => {
        asked += 1;
        if (isAway && asked < 3) throw new MusterError('unavailable', 'the connection broke');
        return node.secretValues;
      },
    });
    agent.order(prepare(specWith({ outputs: [output] })));
    await vi.waitFor(() => expect(agent.sent.at(-1)).toMatch('prepared'), 20_000);
    agent.order(start);
    await agent.sends('running');
    writeFileSync(placeOn(node, 'outputs', 'model.pt'), 'weights');
    isAway = true;
    node.process.end(aKey, exited(0));
    expect((await endOf(agent))?.artifacts).toHaveLength(1);
    expect(asked).toBe(3);
  });
});

describe('a task does not start', () => {
  test.each([
    [
      'vanished',
      () => input({ url: `s3://${s3Bucket}/made/gone` }),
      'artifact_invalid',
      /^input data: s3:.*gone is not in the store/,
    ],
    [
      'changed',
      () => input({ digest: digestOfBytes(Buffer.from('other')) }),
      'artifact_invalid',
      /^input data: .* has changed since/,
    ],
  ])('when an input has %s', async (_what, made, kind, message) => {
    await keep('made/data.txt', content);
    const node = aNode();
    const agent = await node.agent(limits);
    agent.order(prepare(specWith({ inputs: [made()] })));
    expect((await endOf(agent))?.startError).toMatchObject({ kind, message: expect.stringMatching(message) });
  });

  test.each([
    ['NOBODY:S3RVER', {}, 'artifact_refused', /does not accept the key in secret s3/],
    ['nonsense', {}, 'artifact_refused', /secret s3 is not a key of a store/],
    [s3Key, { endpoint: 'http://127.0.0.1:1' }, 'artifact_store', /ECONNREFUSED/],
  ])('with the key %s and settings %j', async (key, changes, kind, message) => {
    const node = aNode();
    node.secretValues = [{ name: 's3', value: Buffer.from(key) }];
    const agent = await node.agent(limits);
    agent.order(prepare(specWith({ inputs: [input()], ...changes })));
    expect((await endOf(agent))?.startError).toMatchObject({ kind, message: expect.stringMatching(message) });
  });
});

describe('a program that ended with 0', () => {
  async function ending(node: TestNode, agent: TestAgent): Promise<void> {
    agent.order(prepare(specWith({ outputs: [output] })));
    await vi.waitFor(() => expect(agent.sent.at(-1)).toMatch('prepared'), 20_000);
    agent.order(start);
    await agent.sends('running');
    mkdirSync(placeOn(node, 'outputs'), { recursive: true });
  }

  test('has failed without its output', async () => {
    const node = aNode();
    const agent = await node.agent(limits);
    await ending(node, agent);
    node.process.end(aKey, exited(0));
    expect(await endOf(agent)).toMatchObject({
      exitCode: 0,
      artifacts: [],
      failure: {
        source: 'artifacts',
        kind: 'artifact_invalid',
        message: 'output model: there is no file model.pt after the program has ended',
      },
    });
  });

  test('has failed when what it had to write to is gone', async () => {
    const node = aNode();
    const agent = await node.agent(limits);
    await ending(node, agent);
    rmSync(placeOn(node), { recursive: true });
    node.process.end(aKey, exited(0));
    expect((await endOf(agent))?.failure).toMatchObject({ source: 'artifacts', kind: 'artifact_invalid' });
  });

  test('has failed when the store is away for too long, and when it is stopped meanwhile', async () => {
    const node = aNode();
    const agent = await node.agent(limits);
    await ending(node, agent);
    writeFileSync(placeOn(node, 'outputs', 'model.pt'), 'weights');
    server.intercept((method) => (method === 'PUT' ? 'drop' : 'serve'));
    node.process.end(aKey, exited(0));
    const lost = await endOf(agent);
    expect(lost?.failure).toMatchObject({ source: 'artifacts', kind: 'artifact_store' });
    expect(lost?.failure?.message).toMatch(/^output model: the store at .* cannot be used/);

    const other = aNode();
    const patient = await other.agent({ artifactLimits: { inputsMs: 300, outputsMs: 600_000 } });
    await ending(other, patient);
    writeFileSync(placeOn(other, 'outputs', 'model.pt'), 'weights');
    const before = server.count('PUT');
    other.process.end(aKey, exited(0));
    await vi.waitFor(() => expect(server.count('PUT')).toBeGreaterThan(before), 20_000);
    // Whoever wonders why it has not ended is told.
    await vi.waitFor(() =>
      expect(patient.manager.reports()).toMatchObject([
        { state: 'running', doing: expect.stringMatching(/^retrying: the store at .* cannot be used/) },
      ]),
    );
    patient.order({ ...stop, graceMs: 10 });
    expect((await endOf(patient))?.failure?.message).toBe('it was stopped meanwhile');
  });

  test('is not asked for its output after it was stopped, or has failed', async () => {
    const node = aNode();
    const agent = await node.agent(limits);
    await ending(node, agent);
    node.process.end(aKey, exited(3));
    const end = await endOf(agent);
    expect(end?.failure?.source).toBe('exit');
    expect(end?.artifacts).toEqual([]);
  });
});
