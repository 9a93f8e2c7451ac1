import { EventEmitter } from 'node:events';
import { MusterError } from '@muster/common/errors';
import { messageType } from '@muster/common/wire/messageTypes';
import { expect, test } from 'vitest';
import { nodeNameOf } from '../modelFixture.ts';
import { RefusedMessage, readBounded } from './bounds/bounded.ts';
import { SessionAllowances, takeInTurn } from './intake.ts';

const node = nodeNameOf('node-1');

function messageOf(fields: object): object {
  const type = messageType('AgentMessage');
  return readBounded('AgentMessage', type.encode(type.fromObject(fields)).finish());
}

test('all that the start and the end of 256 tasks of one node take is not too much at once', () => {
  const allowances = new SessionAllowances(() => 0);
  for (let index = 0; index < 256; index += 1) {
    const task = { jobId: `job_${String(index).padStart(12, '0')}`, attempt: 1, nodeRank: index };
    const endpoints = Array.from({ length: 8 }, () => ({
      address: '10.0.0.1',
      network: '10.0.0.0/8',
      interface: 'eth0',
      rdma: true,
    }));
    const paths = Array.from({ length: 2 }, () => ({ nodeRank: 1, roundTripUs: 100 }));
    const latest = { step: 1, train_loss: 2, grad_norm: 3, learning_rate: 4 };
    const failure = { source: 'output', message: 'CUDA out of memory', kind: 'cuda_oom', blame: 'job' };
    const exit = {
      exitCode: 1,
      finishedAtMs: 1,
      logBytes: 1,
      failure,
      gpuUsage: { gpus: 8, utilizationMean: 1 },
    };
    for (const fields of [
      { prepared: { task, master: { addr: '10.0.0.1', port: 1 }, endpoints } },
      { checked: { task, round: 1, paths } },
      { report: { task, state: 'TASK_STATE_RUNNING', training: { latest } } },
      { report: { task, state: 'TASK_STATE_ENDED', exit, training: { latest } } },
    ])
      allowances.take(node, messageOf(fields));
  }
});

test('what a node says over all of its connections is counted, by its size and by its number', () => {
  const clock = { nowMs: 0 };
  const allowances = new SessionAllowances(() => clock.nowMs);
  const takenOf = (message: object) => {
    for (let taken = 0; taken < 1_000_000; taken += 1) {
      try {
        allowances.take(node, message);
      } catch (error) {
        expect(error).toMatchObject({ code: 'resource_exhausted' });
        return taken;
      }
    }
    throw new Error('there is no end of it');
  };
  const task = { jobId: 'job_0123456789ab', attempt: 1 };
  const large = messageOf({ heartbeat: { observed: Array.from({ length: 1_000 }, () => ({ task })) } });
  const small = messageOf({ heartbeat: { seq: 1 } });
  const few = takenOf(large);
  clock.nowMs += 60_000;
  const more = takenOf(small);
  expect(few).toBeLessThan(300);
  expect(more).toBeGreaterThan(10_000);
  expect(() => allowances.take(nodeNameOf('node-2'), large), 'each node has its own').not.toThrow();
});

class FakeCall extends EventEmitter {
  writableNeedDrain = false;
  readonly steered: string[] = [];

  pause(): void {
    this.steered.push('pause');
  }

  resume(): void {
    this.steered.push('resume');
  }
}

function aCall(take: (message: object) => void = () => {}) {
  const call = new FakeCall();
  const waiting: (() => void)[] = [];
  const refused: unknown[] = [];
  const handle = () => new Promise<void>((resolve) => void waiting.push(resolve));
  takeInTurn<object>(call, take, handle, (error) => refused.push(error));
  return { call, waiting, refused, send: (message: object = {}) => void call.emit('data', message) };
}

test('while too many messages wait for a commit, no more are read', async () => {
  const { call, waiting, send } = aCall();
  for (let count = 0; count < 63; count += 1) send();
  expect(call.steered).toEqual([]);
  send();
  expect(call.steered).toEqual(['pause']);
  waiting[0]?.();
  await new Promise(setImmediate);
  expect(call.steered).toEqual(['pause', 'resume']);
});

test('while answers are not read, no more is read', async () => {
  const { call, waiting, send } = aCall();
  call.writableNeedDrain = true;
  send();
  expect(call.steered).toEqual(['pause']);
  waiting[0]?.();
  await new Promise(setImmediate);
  expect(call.steered).toEqual(['pause']);
  call.writableNeedDrain = false;
  call.emit('drain');
  expect(call.steered).toEqual(['pause', 'resume']);
});

test('a message that is refused ends the session once, and nothing after it is read', () => {
  const error = new MusterError('resource_exhausted', 'too much');
  const { waiting, refused, send } = aCall();
  send(new RefusedMessage(error));
  send(new RefusedMessage(new MusterError('invalid', 'another')));
  send();
  expect(refused).toEqual([error]);
  expect(waiting).toEqual([]);
});
