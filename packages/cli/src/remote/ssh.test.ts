/** With a real sshd on this machine. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { freePort, tempDir } from '../../../../test/support/services.ts';
import { type RunningSshd, startSshd } from '../../../../test/support/sshd.ts';
import { CliError } from '../errors.ts';
import { runOverSsh, type SshCall } from './ssh.ts';
import { sshFailure } from './sshFailure.ts';
import { parseTarget } from './sshTarget.ts';

let sshd: RunningSshd;
beforeAll(async () => {
  sshd = await startSshd();
  return () => sshd.stop();
});
beforeEach(() => writeFileSync(sshd.knownHostsPath, sshd.knownHost));

const run = (script: string, call?: SshCall, typed = sshd.target) =>
  runOverSsh(parseTarget(typed), script, sshd, call);

async function failureOf(work: Promise<unknown>): Promise<CliError> {
  const error = await work.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (error instanceof CliError) return error;
  throw new Error(`expected a CliError, got ${String(error)}`);
}

test('a script runs as it is written, gets its input, and its ends are told apart', async () => {
  const script = `printf '%s\\n' "it's $((1 + 1))"; cat; echo 'to stderr' >&2; exit 7`;
  expect(await run(script, { input: 'a secret\n' })).toEqual({
    exitCode: 7,
    stdout: "it's 2\na secret\n",
    stderr: 'to stderr\n',
  });
});

test('a file goes over as its input, also when the script does not read all of it', async () => {
  const big = Buffer.alloc(8 * 1024 * 1024, 'x');
  const whole = await run('wc -c', { input: Readable.from([big, big]) });
  expect(whole.stdout.trim()).toBe(String(2 * big.length));
  expect((await run('head -c 3; exit 3', { input: Readable.from([big, big]) })).exitCode).toBe(3);
});

test('an unknown and a changed host key are each said with the remedy, and nothing is run', async () => {
  const { path } = tempDir('ran');
  rmSync(sshd.knownHostsPath);
  const unknown = await failureOf(run(`touch ${join(path, 'ran')}`));
  expect(unknown.message).toBe('the host key of 127.0.0.1 is not known here');
  expect(unknown.hints).toEqual([`Compare and confirm it once: ssh ${sshd.target}`]);

  const [, keyType = ''] = sshd.knownHost.split(' ');
  const other = readFileSync(sshd.authorizedKeysPath, 'utf8').split(' ')[1] ?? '';
  writeFileSync(sshd.knownHostsPath, `[127.0.0.1]:${sshd.port} ${keyType} ${other}\n`);
  const changed = await failureOf(run(`touch ${join(path, 'ran')}`));
  expect(changed.message).toBe('127.0.0.1 shows another host key than the one that is known for it here');
  expect(changed.hints[0]).toContain('ssh-keygen -R 127.0.0.1');
  expect(() => readFileSync(join(path, 'ran'))).toThrow('ENOENT');
});

test('a key that is not accepted, a closed port and a name without address are each said', async () => {
  const keys = readFileSync(sshd.authorizedKeysPath, 'utf8');
  writeFileSync(sshd.authorizedKeysPath, '');
  const denied = await failureOf(run('true'));
  writeFileSync(sshd.authorizedKeysPath, keys);
  expect(denied.message).toBe(`${sshd.target} accepts none of the keys that ssh offers`);
  expect(denied.code).toBe('permission_denied');

  const closed = await freePort();
  const target = parseTarget('127.0.0.1');
  const refused = `ssh: connect to host 127.0.0.1 port ${closed}: Connection refused\r\n`;
  expect(sshFailure(target, refused).message).toBe('127.0.0.1 accepts no ssh connections');
  expect((await failureOf(run('true', {}, 'nowhere.invalid'))).message).toBe(
    'no address is known for nowhere.invalid',
  );
});

test('a jump host that does not reach the host is told from the host itself', () => {
  const stderr =
    'channel 0: open failed: connect failed: Connection refused\r\nstdio forwarding failed\r\nConnection closed by UNKNOWN port 65535\r\n';
  const { message, hints } = sshFailure(parseTarget('root@gpu-9'), stderr);
  expect(message).toBe('the jump host on the way to gpu-9 does not reach it');
  expect(hints.join()).toContain('ProxyJump');
});

test('a connection that breaks is not the end of the script', async () => {
  // The parent of the script's shell is the server's process of this connection.
  const broken = await failureOf(run('kill -KILL "$PPID"; cat'));
  expect(broken.message).toMatch(/^the connection to 127\.0\.0\.1 broke/);
  expect(broken.code).toBe('unavailable');
});

test('Ctrl-C ends ssh', async () => {
  const stop = new AbortController();
  const running = failureOf(run('cat', { input: new Readable({ read() {} }), signal: stop.signal }));
  stop.abort();
  expect((await running).message).toBe('interrupted');
});

test.each(['gpu-1', 'root@10.0.0.1', 'a.b@gpu_1.lan', 'root@fd00::1'])('%s is a host', (typed) => {
  expect(parseTarget(typed).text).toBe(typed);
});

test.each(['-oProxyCommand=id', 'root@-x', 'a b', '', 'ssh://gpu-1', 'x;id', '$(id)@h', 'a@b@c', 'h%n'])(
  '%j is refused',
  (typed) => expect(() => parseTarget(typed)).toThrow('is not a host; expected [USER@]HOST'),
);
