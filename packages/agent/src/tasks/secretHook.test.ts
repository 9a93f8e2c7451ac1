import { MusterError } from '@muster/common/errors';
import { describe, expect, test, vi } from 'vitest';
import { exited } from '../drivers/fakeDriver.ts';
import { aKey, aTask, forget, prepare, start, TestNode } from './managerFixture.ts';

const spec = { secrets: ['ssh', 'WANDB_API_KEY=wandb'], env: { WANDB_API_KEY: 'from the spec' } };
const values = [
  { name: 'ssh', value: Buffer.from('an ssh key') },
  { name: 'wandb', value: Buffer.from('hunter2-hunter2') },
];

describe('a task with secrets', () => {
  test('finds them when it starts, also by an agent that has not asked for them, and leaves nothing', async () => {
    const node = new TestNode();
    node.secretValues = values;
    const first = await node.agent();
    first.order(prepare(spec));
    await vi.waitFor(() => expect(first.sent.at(-1)).toMatch('prepared'));
    const agent = await node.restart(first, {
      readSecrets: () => Promise.reject(new Error('nobody is asked twice')),
    });
    agent.order(start);
    await agent.sends('running');
    const env = node.process.launches[0]?.env;
    expect(env).toMatchObject({
      WANDB_API_KEY: 'hunter2-hunter2',
      MUSTER_SECRETS_DIR: expect.stringMatching(/^\/dev\/shm\/muster-.*\/files$/),
    });
    node.write('torch.cuda.OutOfMemoryError: key hunter2-hunter2\n');
    node.process.end(aKey, exited(1));
    await agent.sends('ended 1');
    const message = agent.reports.at(-1)?.exit?.failure?.message;
    expect(message).toContain('key ***************');
    agent.order(forget);
    agent.manager.setUploaded(aTask);
    await vi.waitFor(() => expect(agent.knows()).toEqual([]));
    expect(node.secrets.has(aKey)).toBe(false);
  });

  test('does not start without one, and says which', async () => {
    const node = new TestNode();
    const agent = await node.agent({
      readSecrets: () => Promise.reject(new MusterError('not_found', 'project lab has no secret ssh')),
    });
    agent.order(prepare(spec));
    await agent.sends('ended unknown');
    expect(agent.reports.at(-1)?.exit?.startError?.message).toBe('project lab has no secret ssh');
  });

  test('asks again when the coordinator does not answer', async () => {
    const node = new TestNode();
    let asked = 0;
    const agent = await node.agent({
      readSecrets: async () => {
        asked += 1;
        if (asked === 1) throw new MusterError('unavailable', 'the connection broke');
        return values;
      },
    });
    agent.order(prepare(spec));
    await vi.waitFor(() => expect(agent.sent.at(-1)).toMatch('prepared'), 10_000);
    await node.secrets.remove(aKey);
  });
});
