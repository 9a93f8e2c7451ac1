/** Tasks with accounts of their own, with real accounts of this machine: only root can start them. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ownDirectory } from '../../taskFacts/account.ts';
import type { TaskLaunch } from '../driver.ts';
import { type GuardFixture, never, outputOf, useGuards } from './guardFixture.ts';

const aGuard = useGuards();
const isRoot = process.geteuid?.() === 0;
const alice = `muster-a${process.pid}`;
const bob = `muster-b${process.pid}`;
const shared = `muster-g${process.pid}`;
const limitsFile = `/etc/security/limits.d/${alice}.conf`;
const home = `/tmp/${alice}`;

/** A node whose directory other accounts can pass through, as an agent makes its own. */
function aNode(): GuardFixture {
  const node = aGuard();
  chmodSync(node.root, 0o711);
  return node;
}

async function aTask(node: GuardFixture, script: string, more: Partial<TaskLaunch> = {}) {
  const account = { name: alice, isRule: false };
  const launch = await node.task(['/bin/sh', '-c', script], { account, ...more });
  const driver = node.driver();
  await driver.prepare(launch, () => {});
  await driver.start(launch);
  const exit = await driver.wait(launch, never());
  return { exit, output: outputOf(launch), launch };
}

describe.runIf(isRoot)('as root', () => {
  beforeAll(() => {
    execFileSync('groupadd', [shared]);
    execFileSync('useradd', ['-m', '-d', home, '-G', shared, '-s', '/bin/bash', alice]);
    execFileSync('useradd', ['-M', '-d', '/nonexistent', '-c', 'Bob,,,,umask=027', bob]);
    chmodSync(home, 0o700);
    execFileSync('sh', [
      '-c',
      'printf "%s\\n" "$1 - core 0" "$1 hard nofile 512" > "$2"',
      'sh',
      alice,
      limitsFile,
    ]);
  });
  afterAll(() => {
    for (const name of [alice, bob]) execFileSync('userdel', ['-f', name], { stdio: 'ignore' });
    execFileSync('sh', ['-c', 'groupdel "$1"; rm -rf "$2" "$3"', 'sh', shared, limitsFile, home]);
  });

  test('has the ids, groups, home, limits and login of its account, and no way to become another one', async () => {
    const node = aNode();
    const script =
      'id -un; id -Gn; pwd; echo "$HOME $USER $LOGNAME $SHELL $OWN"; ulimit -c; ulimit -n; umask; ' +
      'grep -E "^(Uid|CapEff|CapPrm|CapInh|CapAmb|NoNewPrivs|Seccomp):" /proc/self/status';
    const { exit, output } = await aTask(node, script, { env: { PATH: '/usr/bin:/bin', OWN: 'kept' } });
    expect(exit.exitCode).toBe(0);
    const lines = output.split('\n');
    expect(lines[0]).toBe(alice);
    expect(lines[1]?.split(' ').sort()).toEqual([alice, shared].sort());
    expect(lines.slice(2, 7)).toEqual([home, `${home} ${alice} ${alice} /bin/bash kept`, '0', '512', '0022']);
    const uid = statSync(home).uid;
    expect(output).toMatch(new RegExp(`Uid:\\s${uid}\\s${uid}\\s${uid}\\s${uid}\\n`));
    for (const set of ['CapEff', 'CapPrm', 'CapInh', 'CapAmb'])
      expect(output).toMatch(`${set}:\t0000000000000000`);
    expect(output).toContain('NoNewPrivs:\t1');
  });

  test('has the umask of its account, or that of the job', async () => {
    const node = aNode();
    const account = { name: bob, isRule: false };
    const masks = async (umask: number | null) => {
      const workdir = join(node.root, `of-bob-${umask}`);
      execFileSync('install', ['-d', '-o', bob, workdir]);
      const script = 'umask; true > made; stat -c %a made';
      return (await aTask(node, script, { account, umask, workdir })).output;
    };
    expect(await masks(null)).toBe('0027\n640\n');
    expect(await masks(0o007)).toBe('0007\n660\n');
  });

  test('libraries that a job preloads are loaded as its account, never as root', async () => {
    const { output } = await aTask(aNode(), 'id -u', {
      env: { PATH: '/usr/bin:/bin', LD_PRELOAD: '/nonexistent.so', GLIBC_TUNABLES: 'x=1', GCONV_PATH: '/x' },
    });
    expect(output).toContain(`\n${statSync(home).uid}\n`);
  });

  test('its output is its own to open again, and its own directory nobody else can enter', async () => {
    const { output, launch } = await aTask(aNode(), 'echo one > /dev/stderr; echo two');
    expect(output).toBe('one\ntwo\n');
    const { uid, mode } = statSync(ownDirectory(launch.directory));
    expect([uid, mode & 0o777]).toEqual([statSync(home).uid, 0o700]);
  });

  test('a directory for checkpoints is made as the account, where it may and with its mask, and nowhere else', async () => {
    const node = aNode();
    const made = join(home, 'runs', 'a');
    await aTask(node, 'true', { directories: [made], umask: 0o027 });
    expect([statSync(made).uid, statSync(made).mode & 0o777]).toEqual([statSync(home).uid, 0o750]);
    const refused = join(node.root, 'of-root');
    await expect(aTask(node, 'true', { directories: [refused] })).rejects.toMatchObject({
      name: 'DriverError',
      message: expect.stringContaining(`create it on this node for the user ${alice}`),
    });
    expect(existsSync(refused)).toBe(false);
  });

  test('a directory for checkpoints that is there has to be one where the account may save', async () => {
    const node = aNode();
    const theirs = join(node.root, 'theirs');
    mkdirSync(theirs, { mode: 0o755 });
    chmodSync(theirs, 0o755);
    const refusal = {
      name: 'DriverError',
      message: expect.stringContaining(`cannot be used by ${alice} on this node (permission denied)`),
    };
    await expect(aTask(node, 'true', { directories: [theirs] })).rejects.toMatchObject(refusal);
    const account = { name: alice, isRule: false };
    const ofContainer = (directory: string) =>
      node.fence().accountIds(account, { ownFiles: [], directories: [directory] });
    await expect(ofContainer(theirs)).rejects.toMatchObject(refusal);
    const made = join(home, 'of-container');
    await ofContainer(made);
    expect([statSync(made).uid, readdirSync(made)]).toEqual([statSync(home).uid, []]);
  });

  test("the node's own directory for checkpoints belongs to the account from the start on", async () => {
    const node = aNode();
    const own = join(node.root, 'checkpoints');
    mkdirSync(own, { mode: 0o700 });
    const { output } = await aTask(node, `echo saved > ${own}/step_1 && cat ${own}/step_1`, {
      ownDirectories: [own],
    });
    expect(output).toBe('saved\n');
  });

  test('files that were given to it are its alone, of a process and of a container', async () => {
    const node = aNode();
    const { uid, gid } = statSync(home);
    const given = (name: string) => {
      const files = join(node.root, name, 'files');
      mkdirSync(files, { recursive: true });
      chmodSync(join(node.root, name), 0o700);
      writeFileSync(join(files, 'key'), 'the key\n', { mode: 0o444 });
      return join(files, 'key');
    };
    const ofProcess = given('process');
    const ownDirectories = [join(node.root, 'process')];
    const { output } = await aTask(node, `cat ${ofProcess}; stat -c '%a %U' ${ofProcess}`, {
      ownDirectories,
      ownFiles: [ofProcess],
    });
    expect(output).toBe(`the key\n400 ${alice}\n`);

    const ofContainer = given('container');
    const ids = await node.fence().accountIds(
      { name: alice, isRule: false },
      {
        ownFiles: [ofContainer],
        directories: [],
      },
    );
    expect(ids).toMatchObject({ uid, gid });
    expect(ids.groups).toHaveLength(2);
    expect(statSync(ofContainer)).toMatchObject({ uid, gid, mode: 0o100400 });
    await expect(
      node.fence().accountIds({ name: 'nobody-here', isRule: false }, { ownFiles: [], directories: [] }),
    ).rejects.toMatchObject({
      name: 'DriverError',
      message: expect.stringContaining('no account nobody-here'),
    });
  });

  test('nothing is given below a directory that an account has already', async () => {
    const node = aNode();
    const own = join(node.root, 'own-of-alice');
    mkdirSync(join(own, 'files'), { recursive: true });
    writeFileSync(join(own, 'files', 'key'), '', { mode: 0o444 });
    const { uid, gid } = statSync(home);
    chownSync(own, uid, gid);
    await node.fence().accountIds(
      { name: alice, isRule: false },
      {
        ownFiles: [join(own, 'files', 'key')],
        directories: [],
      },
    );
    expect(statSync(join(own, 'files', 'key'))).toMatchObject({ uid: 0, mode: 0o100444 });
  });

  test('another account reads nothing of the task, of the guard, or of the records beside it', async () => {
    const node = aNode();
    const { launch } = await aTask(node, 'echo secret > "$OWN/file"; chmod 600 "$OWN/file"; echo secret', {
      env: { PATH: '/usr/bin:/bin', OWN: ownDirectory(join(node.root, 'victim.1.0')) },
      key: 'victim.1.0',
    });
    const files = execFileSync('find', [node.root, '-type', 'f', '-o', '-type', 's'], { encoding: 'utf8' });
    const paths = files.trim().split('\n');
    expect(paths).toEqual(
      expect.arrayContaining([
        join(launch.directory, 'output.log'),
        join(ownDirectory(launch.directory), 'file'),
      ]),
    );
    const attempt =
      'while read -r path; do if cat "$path" || echo x >> "$path"; then echo "REACHED $path"; fi; done';
    const hostile = await aTask(
      node,
      `{ ${attempt}; } 2>/dev/null <<EOF\n${paths.join('\n')}\nEOF\nls "$0" "$1"; echo done`,
      {
        account: { name: bob, isRule: true },
        workdir: '/',
      },
    );
    expect(hostile.output).not.toContain('REACHED');
    expect(hostile.output).not.toContain('secret');
    expect(hostile.output).toContain('done');
  });

  test('a working directory that the account cannot enter, and accounts that cannot be used, are named', async () => {
    const node = aNode();
    const refusals = [
      [{ workdir: home, account: { name: bob, isRule: false } }, `${home} may not be entered by ${bob}`],
      [
        { account: { name: 'nobody-here', isRule: false } },
        'this node has no account nobody-here: create it',
      ],
      [{ account: { name: 'daemon', isRule: false } }, 'daemon is one of the system (uid 1)'],
    ] as const;
    for (const [more, message] of refusals) {
      await expect(aTask(node, 'true', more)).rejects.toMatchObject({
        message: expect.stringContaining(message),
      });
    }
    const asRoot = await aTask(node, 'id -u', { account: { name: 'root', isRule: true }, workdir: '/' });
    expect(asRoot.output).toBe('0\n');
  });

  test('a program that is missing or may not be executed is named as for any task', async () => {
    const node = aNode();
    const driver = node.driver();
    const account = { name: alice, isRule: false };
    const missing = await node.task(['no-such-program'], { account });
    await expect(driver.start(missing)).rejects.toMatchObject({ causeKind: 'command_not_found' });
    const hidden = await node.task([join(node.root, 'closed', 'program')], { account });
    mkdirSync(join(node.root, 'closed'), { mode: 0o700 });
    writeFileSync(join(node.root, 'closed', 'program'), '#!/bin/sh\n', { mode: 0o755 });
    await expect(driver.start(hidden)).rejects.toMatchObject({ causeKind: 'exit_code' });
  });

  test('the guard is root again afterwards', async () => {
    const node = aNode();
    await aTask(node, 'true');
    const status = readFileSync(`/proc/${await node.livePid()}/status`, 'utf8');
    expect(status).toMatch(/Uid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n/);
    const own = readFileSync('/proc/self/status', 'utf8');
    expect(/CapEff:.*/.exec(status)?.[0]).toBe(/CapEff:.*/.exec(own)?.[0]);
  });
});
