/** Secrets over the wire: who may store them, and which node gets them. */
import type { Client } from '@grpc/grpc-js';
import type { ReadSecretsResponse__Output } from '@muster/common/gen/muster/v1/ReadSecretsResponse';
import type { JobId, TaskRef } from '@muster/common/ids';
import { connectMuster } from '@muster/common/wire/client';
import { agentHubService } from '@muster/common/wire/service';
import { fromServiceError } from '@muster/common/wire/status';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { hashToken } from '../auth/tokens.ts';
import {
  addCredential,
  startTestCoordinator,
  type TestCoordinator,
  withToken,
} from '../coordinatorFixture.ts';
import { connected } from './agentFixture.ts';
import { submitJob } from './jobFixture.ts';

let coordinator: TestCoordinator;
let client: Client;
beforeEach(async () => {
  coordinator = await startTestCoordinator();
  client = coordinator.client();
});
afterEach(() => coordinator.close());

const value = Buffer.from('hunter2 hunter2');

function readSecrets(token: string, task: TaskRef): Promise<ReadSecretsResponse__Output> {
  const { path, requestSerialize, responseDeserialize } = agentHubService.ReadSecrets;
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      path,
      requestSerialize,
      responseDeserialize,
      { task },
      withToken(token),
      (error, answer) => (error === null ? resolve(answer as never) : reject(fromServiceError(error))),
    );
  });
}

function submitWith(secrets: readonly string[], project = 'lab'): Promise<JobId> {
  const spec = { name: 'train', command: ['true'], project, secrets, resources: { gpus: 1 } };
  return submitJob(coordinator, `r-${secrets.join()}`, JSON.stringify(spec));
}

test('a node gets the secrets of its own task, once each, and until that has ended', async () => {
  await coordinator.api.setSecret('lab', 'wandb', value);
  await coordinator.api.setSecret('lab', 'ssh', Buffer.from('another one'));
  const agent = await connected(coordinator, client, 'node-1');
  const other = await connected(coordinator, coordinator.client(), 'node-2');
  const jobId = await submitWith(['wandb', 'KEY=wandb']);
  await vi.waitFor(() => expect(coordinator.state.jobs.get(jobId)?.lastAttempt).toBe(1));
  const task = { jobId, attempt: 1, nodeRank: 0 };
  const [holder, foreign] =
    coordinator.memory.attempts.get(jobId)?.get(1)?.tasks[0]?.node === 'node-1'
      ? [agent, other]
      : [other, agent];
  expect(await readSecrets(holder.token, task)).toEqual({ secrets: [{ name: 'wandb', value }] });

  const refused = {
    code: 'not_found',
    message: 'no such task is assigned to this node, so it gets no secrets',
  };
  await expect(readSecrets(foreign.token, task)).rejects.toMatchObject(refused);
  await expect(readSecrets(holder.token, { ...task, attempt: 2 })).rejects.toMatchObject(refused);
  await expect(readSecrets(holder.token, { ...task, nodeRank: 1 })).rejects.toMatchObject(refused);
  await expect(readSecrets(coordinator.adminToken, task)).rejects.toMatchObject({
    code: 'permission_denied',
  });

  holder.send({ prepared: { task, master: { addr: '127.0.0.1', port: 1 } } });
  holder.send({ report: { task, state: 'TASK_STATE_RUNNING' } });
  holder.send({ report: { task, state: 'TASK_STATE_ENDED', exit: { exitCode: 0 } } });
  await vi.waitFor(() => expect(coordinator.state.jobs.has(jobId)).toBe(false));
  await expect(readSecrets(holder.token, task)).rejects.toMatchObject(refused);
});

test('a job that names a secret which its project does not have is refused', async () => {
  await coordinator.api.setSecret('other', 'wandb', value);
  await expect(submitWith(['wandb'])).rejects.toMatchObject({
    code: 'not_found',
    message: expect.stringContaining(
      'project lab has no secret wandb; to store it: muster secret set wandb --project lab',
    ),
  });
});

test('a user has to do with the secrets of their own projects alone', async () => {
  await coordinator.api.setSecret('lab', 'wandb', value);
  await coordinator.api.setSecret('other', 'wandb', value);
  addCredential(coordinator.memory, {
    id: 'user:uma:1',
    kind: 'user',
    subject: 'uma',
    secretHash: hashToken('muster_user_uma'),
  });
  coordinator.memory.users.set('uma', { name: 'uma', role: 'user', projects: ['lab'], createdAtMs: 0 });
  const again = await startTestCoordinator({ memory: coordinator.memory });
  const uma = connectMuster({ address: again.address, token: 'muster_user_uma' });
  try {
    expect((await uma.listSecrets()).map(({ project }) => project)).toEqual(['lab']);
    await uma.setSecret('lab', 'more', value);
    const refused = { code: 'permission_denied' };
    await expect(uma.setSecret('other', 'more', value)).rejects.toMatchObject(refused);
    await expect(uma.listSecrets('other')).rejects.toMatchObject(refused);
    await expect(uma.removeSecret('other', 'wandb')).rejects.toMatchObject(refused);
    await expect(uma.rotateSecretKey()).rejects.toMatchObject(refused);
    await uma.removeSecret('lab', 'more');
  } finally {
    uma.close();
    await again.close();
  }
});

test('lists have everything but values, and the store has them encrypted only', async () => {
  const stored = await coordinator.api.setSecret('lab', 'wandb', value);
  coordinator.clock.nowMs += 1_000;
  const replaced = await coordinator.api.setSecret('lab', 'wandb', value);
  await coordinator.api.setSecret('another', 'x', value);
  expect(stored).toMatchObject({ project: 'lab', name: 'wandb', changedBy: 'admin' });
  expect(replaced.changedAtMs - replaced.createdAtMs).toBe(1_000);
  expect(await coordinator.api.listSecrets('lab')).toEqual([replaced]);
  expect((await coordinator.api.listSecrets()).map(({ project }) => project)).toEqual(['another', 'lab']);
  for (const { sealed } of coordinator.memory.secrets.values())
    expect(Buffer.from(sealed).includes('hunter2')).toBe(false);
  const events = [...coordinator.memory.events.values()].filter(({ kind }) => kind.startsWith('secret.'));
  expect(events.map(({ data }) => data)).toEqual([
    { project: 'lab', name: 'wandb', replaced: false },
    { project: 'lab', name: 'wandb', replaced: true },
    { project: 'another', name: 'x', replaced: false },
  ]);
  await coordinator.api.removeSecret('lab', 'wandb');
  await expect(coordinator.api.removeSecret('lab', 'wandb')).rejects.toMatchObject({ code: 'not_found' });
});

test.each([
  ['a b', 'lab', value, /"a b": a secret's name has 1 to 63 letters/],
  ['a', 'Lab', value, /"Lab" is not the name of a project/],
  ['a', 'lab', Buffer.from('short'), /the value of a has 5 bytes; a secret has 8 to 65536/],
  ['a', 'lab', Buffer.alloc(65_537), /has 65537 bytes/],
] as const)('%j of %j is refused', async (name, project, bytes, message) => {
  await expect(coordinator.api.setSecret(project, name, bytes)).rejects.toMatchObject({
    code: 'invalid',
    message: expect.stringMatching(message),
  });
});
