import { expect, test } from 'vitest';
import { exitCodes } from '../exitCodes.ts';
import { submittedAtMs } from '../testing/fakeCoordinator.ts';
import { run } from '../testing/testContext.ts';

const secret = {
  project: 'lab',
  name: 'wandb',
  createdAtMs: submittedAtMs,
  changedAtMs: submittedAtMs,
  changedBy: 'admin:1',
};
const answers = { SetSecret: () => secret };

test.each([
  ['hunter2-hunter2\n', 'hunter2-hunter2'],
  ['hunter2-hunter2\r\n', 'hunter2-hunter2'],
  ['hunter2-hunter2', 'hunter2-hunter2'],
  ['-----BEGIN-----\nabc\n', '-----BEGIN-----\nabc\n'],
])('secret set stores %j from standard input as %j', async (stdin, value) => {
  const argv = ['secret', 'set', 'wandb', '--project', 'lab'];
  const { stdout, requests } = await run(argv, answers, { stdin });
  expect(stdout).toBe('wandb of project lab is stored.\n');
  expect(requests).toEqual([
    { method: 'SetSecret', request: { project: 'lab', name: 'wandb', value: Buffer.from(value) } },
  ]);
});

test('secret set takes no bad name and nothing too large, and sends nothing then', async () => {
  const set = (name: string, stdin: string) => run(['secret', 'set', name], answers, { stdin });
  expect(await set('a b', 'hunter2-hunter2')).toMatchObject({
    exitCode: exitCodes.usage,
    requests: [],
    stderr: expect.stringContaining('invalid secret name "a b": expected 1 to 63 letters'),
  });
  expect(await set('wandb', 'x'.repeat(65_539))).toMatchObject({
    exitCode: exitCodes.usage,
    requests: [],
    stderr: expect.stringContaining('the value is larger than 65536 bytes'),
  });
});

test('secret list shows everything but values', async () => {
  const ListSecrets = () => ({ secrets: [secret] });
  const { stdout } = await run(['secret', 'list'], { ListSecrets });
  expect(stdout).toMatch(/^PROJECT +NAME +CREATED +CHANGED +BY *\nlab +wandb .* admin:1\n$/);
  const json = await run(['secret', '-o', 'json', '--project', 'lab'], { ListSecrets });
  expect(JSON.parse(json.stdout)).toEqual({ secrets: [secret] });
  expect(json.requests).toMatchObject([{ request: { project: 'lab' } }]);
});

test('secret remove and rotate-key tell what they have done', async () => {
  const removed = await run(['secret', 'remove', 'wandb'], { RemoveSecret: () => secret });
  expect(removed.stdout).toBe('wandb of project lab is removed.\n');
  expect(removed.requests).toMatchObject([{ request: { project: 'default', name: 'wandb' } }]);
  const rotated = await run(['secret', 'rotate-key'], { RotateSecretKey: () => ({ secrets: 2 }) });
  expect(rotated.stdout).toBe('The key is replaced, and 2 secrets are encrypted with it.\n');
});
