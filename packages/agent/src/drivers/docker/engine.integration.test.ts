/** What the client of the engine, and the driver on it, do with a real engine, beside the stand-ins of engine.test.ts. */
import { randomUUID } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';
import { serveTestImage } from '../../../../../test/support/images.ts';
import { dockerSocket, tempDir, waitFor } from '../../../../../test/support/services.ts';
import { aLaunch } from '../launchFixture.ts';
import { Engine } from './engine.ts';
import { aDriver } from './engineFixture.ts';

it('is known by what it answers', async () => {
  const engine = new Engine(await dockerSocket());
  expect(await engine.identity()).toMatchObject({ product: 'docker' });
  expect((await engine.info()).cdiSpecDirs).toBeInstanceOf(Array);
  expect(await engine.inspectContainer('muster-no-such-container')).toBeNull();
  expect(await engine.inspectImage('muster-test/no-such-image:1')).toBeNull();
});

it('gives up a pull that takes hours', async () => {
  const reason = new Error('no longer needed');
  const served = await serveTestImage({ isSlow: true });
  onTestFinished(() => served.remove());
  const directory = tempDir('task').path;
  const launch = aLaunch({ key: `a${randomUUID().slice(0, 13)}.1.0`, directory, image: served.image });
  const driver = aDriver(await dockerSocket());
  const abort = new AbortController();
  const started = driver.start(launch, abort.signal);
  await waitFor('the engine gets a part of the image', () => served.openTransfers() > 0);
  abort.abort(reason);

  await expect(started).rejects.toBe(reason);
  await waitFor('the engine has given the pull up', () => served.openTransfers() === 0);
  expect(await driver.recover(launch)).toEqual({ kind: 'absent' });
  expect(await driver.list()).toEqual([]);
});
