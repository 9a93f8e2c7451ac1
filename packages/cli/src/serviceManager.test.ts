/** Heard by a datagram socket, as systemd's is. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { tempDir, waitFor } from '../../../test/support/services.ts';
import { readEnvironment } from './environment.ts';
import { notifyServiceManager } from './serviceManager.ts';

/** Node has no such socket. Prints what it hears and from which process, a line each; as systemd does, it asks the kernel. */
const listener = `
import socket, struct, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
s.bind(sys.argv[1].replace('@', '\\0'))
print('listening', flush=True)
while True:
    text, extras, _, _ = s.recvmsg(4096, 1024)
    print(text.decode(), struct.unpack('3i', extras[0][2])[0], flush=True)
`;

async function aServiceManager(socket = join(tempDir('notify').path, 'notify')) {
  let text = '';
  const child: ChildProcess = spawn('python3', ['-c', listener, socket], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  child.stdout?.on('data', (data: Buffer) => (text += data.toString()));
  const received = () => text.trimEnd().split('\n');
  await waitFor('it listens', () => received().includes('listening'));
  return { socket, received };
}

const { pid } = process;

test('systemd learns that a daemon serves, goes on to serve, and ends', async () => {
  const { socket, received } = await aServiceManager();
  const problems: string[] = [];
  const manager = { notifySocket: socket, watchdogMs: 60 };
  const notice = await notifyServiceManager(manager, (sentence) => problems.push(sentence));
  onTestFinished(() => notice.close());
  notice.ready();
  await waitFor('three pings', () => received().filter((line) => line === `WATCHDOG=1 ${pid}`).length >= 3);
  notice.stopping();
  await waitFor('its end', () => received().includes(`STOPPING=1 ${pid}`));
  expect(received()[1]).toBe(`READY=1 ${pid}`);
  expect(problems).toEqual([]);
});

test('without a watchdog there are no pings, and abstract sockets work as well', async () => {
  const { socket, received } = await aServiceManager(`@muster-test-${randomUUID()}`);
  const notice = await notifyServiceManager({ notifySocket: socket, watchdogMs: null }, () => {});
  notice.ready();
  notice.stopping();
  await waitFor('its end', () => received().includes(`STOPPING=1 ${pid}`));
  expect(received()).toEqual(['listening', `READY=1 ${pid}`, `STOPPING=1 ${pid}`]);
});

test('a systemd that cannot be notified is reported once, and is no reason to end', async () => {
  const problems: string[] = [];
  const notifySocket = join(tempDir('notify').path, 'gone');
  const notice = await notifyServiceManager({ notifySocket, watchdogMs: null }, (text) =>
    problems.push(text),
  );
  notice.ready();
  notice.stopping();
  expect(problems).toEqual([`systemd cannot be notified of READY=1 at ${notifySocket}: ENOENT`]);
});

test('what systemd says is for this process, and for none that it starts', () => {
  const variables = { NOTIFY_SOCKET: '/run/systemd/notify', WATCHDOG_USEC: '60000000', PATH: '/bin' };
  const own = readEnvironment({ ...variables, WATCHDOG_PID: String(process.pid) }, 'muster', '/');
  expect(own.serviceManager).toEqual({ notifySocket: '/run/systemd/notify', watchdogMs: 60_000 });
  expect(own.variables).toEqual({ PATH: '/bin' });
  const other = readEnvironment({ ...variables, WATCHDOG_PID: '1' }, 'muster', '/');
  expect(other.serviceManager).toEqual({ notifySocket: '/run/systemd/notify', watchdogMs: null });
  expect(readEnvironment({ PATH: '/bin' }, 'muster', '/').serviceManager).toBeNull();
});
