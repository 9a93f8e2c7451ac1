/** What a task prints of its secrets does not leave the node. */
import { appendFileSync } from 'node:fs';
import { taskKey } from '@muster/common/ids';
import { expect, test, vi } from 'vitest';
import { Mask } from '../taskFacts/mask.ts';
import { aTask } from '../tasks/managerFixture.ts';
import { uploading } from './uploaderFixture.ts';

const secret = 'hunter2-hunter2';
const mask = new Mask([Buffer.from(secret)]);

test('a value is hidden wherever pieces and writes cut it, and positions stay', async () => {
  const { uploader, logs, complete, file } = await uploading(() => mask);
  const path = file('');
  uploader.follow(aTask, path, null);
  appendFileSync(path, 'key hunter2-');
  await vi.waitFor(() => expect(logs.of(aTask).toString()).toBe('key '));
  appendFileSync(path, 'hunter2 and hunt');
  await vi.waitFor(() => expect(logs.of(aTask).toString()).toBe('key *************** and '));
  appendFileSync(path, 'ing\n');
  await vi.waitFor(() => expect(logs.of(aTask).toString()).toBe('key *************** and hunting\n'));
  // Of which a piece ends within one.
  const much = secret.repeat(20_000);
  appendFileSync(path, `${much}hunter2`);
  const size = 32 + much.length + 7;
  uploader.follow(aTask, path, size);
  await vi.waitFor(() => expect(complete).toEqual([taskKey(aTask)]));
  const arrived = logs.of(aTask).toString();
  expect(arrived.length).toBe(size);
  expect(arrived).not.toContain('hunter2-');
  expect(arrived.endsWith('***hunter2')).toBe(true);
});
