/** What the real engine gives to containers under the policy of a node. */
import { chmodSync, mkdirSync, readlinkSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ensureTestImage } from '../../../../../test/support/images.ts';
import { tempDir } from '../../../../../test/support/services.ts';
import { RecordingFence } from '../recordingFence.ts';
import { containerDefaults } from './containerPolicy.ts';
import { aDriver, aTask, never, outputOf, run, startError, useDocker } from './dockerFixture.ts';

useDocker();

describe('what a task gets', () => {
  it('is the network of the node for peers on other nodes, and else one of its own', async () => {
    const command = ['readlink', '/proc/self/ns/net'];
    const ofNode = readlinkSync('/proc/self/ns/net');
    expect((await run({ command, network: 'host' })).output.trim()).toBe(ofNode);
    expect((await run({ command, network: 'bridge' })).output.trim()).not.toBe(ofNode);

    // Such as the pages for Prometheus, which ask nobody who they are.
    const page = createServer((_, response) => response.end('all that the node does'));
    await new Promise<void>((resolve) => page.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void page.close());
    const { port } = page.address() as AddressInfo;
    const ask = ['sh', '-c', `wget -q -O - http://127.0.0.1:${port}/ || echo nobody`];
    expect((await run({ command: ask, network: 'host' })).output).toBe('all that the node does');
    expect((await run({ command: ask, network: 'bridge' })).output).toMatch(/nobody\n$/);
  });

  it('are no capabilities and no way to get any, whoever it runs as', async () => {
    const command = ['grep', '-E', 'NoNewPrivs|Cap(Inh|Prm|Eff|Bnd|Amb)', '/proc/self/status'];
    for (const user of [containerDefaults.user, 'image']) {
      const { output } = await run({ command }, { user });
      expect(output).toMatch(/NoNewPrivs:\s+1/);
      expect(output.match(/Cap\w+:\s+0{16}\n/g)).toHaveLength(5);
    }
    const { output } = await run({ command }, { user: 'image', capabilities: ['IPC_LOCK'] });
    expect(output).toMatch(/CapBnd:\s+0000000000004000/);
  });

  it('is the account of its job, with its groups and none of the image, in files on mounts too', async () => {
    const root = tempDir('volume').path;
    chmodSync(root, 0o777);
    const fence = new RecordingFence();
    fence.moreGroups = [27];
    const mountRoots = [{ path: root, readOnly: false }];
    const script =
      'grep -E "^(Uid|Gid|Groups|CapEff|NoNewPrivs):" /proc/self/status; touch /data/made; ' +
      'cat /data/of-root 2>/dev/null || echo closed';
    writeFileSync(join(root, 'of-root'), '', { mode: 0o600 });
    const launch = aTask({
      command: ['sh', '-c', script],
      account: { name: '4001', isRule: false },
      image: await ensureTestImage({
        tag: 'muster-test/other-user:1',
        changes: ['USER 4002:0'],
        groups: { text: 'root:x:0:\nwheel:x:10:4001\nsudo:x:27:\n', at: 'lib/group' },
      }),
      volumes: [{ source: root, target: '/data', readOnly: false }],
    });
    const driver = aDriver({ policy: { ...containerDefaults, mountRoots }, fence });
    await driver.start(launch);
    expect(await driver.wait(launch, never)).toMatchObject({ exitCode: 0 });
    const output = outputOf(launch);
    expect(output).toMatch(/Uid:\s4001\s4001\s4001\s4001\n/);
    expect(output).toMatch(/Gid:\s4001\s4001\s4001\s4001\n/);
    expect(output).toMatch(/Groups:\s27 4001 ?\n/);
    expect(output).toMatch(/CapEff:\s0{16}\n/);
    expect(output).toMatch(/NoNewPrivs:\s1\n/);
    expect(output).toContain('closed');
    const { uid, gid } = statSync(join(root, 'made'));
    expect([uid, gid]).toEqual([4001, 4001]);
    await driver.close();
  });

  it.each([undefined, 'lib/group'])(
    'is no group that an image calls by a number of another one, at %s',
    async (at) => {
      const fence = new RecordingFence();
      fence.moreGroups = [27];
      const tag = `muster-test/misnamed-groups${at === undefined ? '' : '-link'}:1`;
      const text = 'root:x:0:\n27:x:0:\n';
      const groups = at === undefined ? { text } : { text, at };
      const launch = aTask({
        account: { name: '4001', isRule: false },
        image: await ensureTestImage({ tag, groups }),
      });
      const error = await startError(launch, aDriver({ fence }));
      expect(error.message).toContain('has another group by the name "27"');
      expect(await aDriver().list()).toEqual([]);
    },
  );

  it('is a user who is not root, unless its node lets images be root', async () => {
    const command = ['sh', '-c', 'echo $(id -u):$(id -g) $HOME $USER; touch $HOME/cache && echo written'];
    expect((await run({ command })).output).toBe('65532:65532 /tmp muster\nwritten\n');
    expect((await run({ command, env: { HOME: '/bin' } })).output).toMatch(
      /^65532:65532 \/bin muster\n.*denied/,
    );
    expect((await run({ command }, { user: '1234:5678' })).output).toContain('1234:5678');
    expect((await run({ command }, { user: 'image' })).output).toContain('0:0');
    const own = await ensureTestImage({ tag: 'muster-test/user:1', changes: ['USER 4321:21'] });
    expect((await run({ command: ['id', '-u'], image: own })).output).toBe('4321\n');
    // Root by another name would do, so a name is no proof.
    const named = await ensureTestImage({ tag: 'muster-test/named-user:1', changes: ['USER nobody'] });
    expect((await run({ command: ['id', '-u'], image: named })).output).toBe('65532\n');
  });

  it('is a file system that cannot be written to, where its node wants that', async () => {
    const command = ['sh', '-c', 'touch /tmp/a && echo tmp; touch /bin/a || echo refused'];
    const { output } = await run({ command }, { user: 'image', readOnlyRoot: true });
    expect(output).toMatch(/^tmp\n.*Read-only.*\nrefused\n$/);
  });
});

describe('what a task does not get', () => {
  it('names a directory that the node lets nobody mount, and the setting that would', async () => {
    const source = tempDir('volume').path;
    const launch = aTask({ volumes: [{ source, target: '/data', readOnly: true }] });
    const error = await startError(launch);
    expect(error.message).toContain(`does not let jobs mount ${source} (allowed: none)`);
    expect(error.message).toContain(`--mount-root ${source}`);
    expect(await aDriver().list()).toEqual([]);
  });

  it('does not follow a link that was exchanged after it was looked at', async () => {
    const root = tempDir('volume').path;
    const [allowed, secret, link] = [join(root, 'allowed'), join(root, 'secret'), join(root, 'allowed/link')];
    for (const path of [allowed, secret, join(allowed, 'good')]) mkdirSync(path, { recursive: true });
    writeFileSync(join(secret, 'key'), 'secret');
    symlinkSync(join(allowed, 'good'), link);
    const mountRoots = [{ path: allowed, readOnly: false }];
    const driver = aDriver({ policy: { ...containerDefaults, mountRoots } });
    const launch = aTask({
      command: ['ls', '/data'],
      volumes: [{ source: link, target: '/data', readOnly: true }],
    });
    await driver.prepare(launch, () => {});
    rmSync(link);
    symlinkSync(secret, link);
    const error = await startError(launch, driver);
    expect(error.message).toContain(`does not let jobs mount ${link}, which is ${secret},`);
  });
});
