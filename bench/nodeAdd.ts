/**
 * `muster node add` of five machines: booted systems with a real sshd on a network of their own, which share the processors of this
 * one. With the archive copied beforehand, complete, and again on hosts that are nodes. Floors of the same run: the archive copied by
 * scp to all of them, and a command by ssh on all of them.
 *
 *     node bench/nodeAdd.ts [hosts]      as root; boots machines as test/e2e/nodeAdd.test.ts does
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { nativeParts } from '../scripts/package/native.mjs';
import { makeTree } from '../scripts/package/tree.mjs';
import { type BootedMachine, bootMachine } from '../test/support/hosts/bootedMachine.ts';
import { connectMachines, startSshdOn } from '../test/support/hosts/machineNetwork.ts';
import { runProgram } from '../test/support/hosts/programs.ts';
import { releaseAll, tempDir } from '../test/support/services.ts';
import { quietMachine, report, reportMachine, rounded } from './support.ts';

const names = Array.from({ length: Number(process.argv[2] ?? 5) }, (_, index) => `gpu-${index + 1}`);
const targets = names.map((name) => `root@${name}`);
const release = {
  version: '0.1.0',
  arch: process.arch as 'x64' | 'arm64',
  commit: '0123456789abcdef0123456789abcdef01234567',
  epochS: 1_700_000_000,
};
const archive = '/srv/muster-0.1.0-linux.tar.gz';

/** Those that still boot are in it: none is left where another one does not boot. */
const machines: Promise<BootedMachine>[] = [];

function booted(name: string, binds: Readonly<Record<string, string>>): Promise<BootedMachine> {
  const machine = bootMachine(name, binds);
  machines.push(machine);
  return machine;
}

async function removeMachines(): Promise<void> {
  for (const each of await Promise.allSettled(machines))
    if (each.status === 'fulfilled') await each.value.remove();
}

async function boot(files: string): Promise<BootedMachine> {
  const head = await booted('head', { '/srv': files });
  const others = await Promise.all(names.map((name) => booted(name, {})));
  await connectMachines(head, others);
  const addresses = names.map((name, index) => `echo "10.77.0.${index + 2} ${name}" >> /etc/hosts`);
  const key = 'mkdir -p -m 700 ~/.ssh; ssh-keygen -q -t ed25519 -N "" -f ~/.ssh/id_ed25519';
  await head.must('sh', '-euc', [`rm -rf ~/.ssh; ${key}`, ...addresses].join('\n'));
  const publicKey = await head.must('sh', '-c', 'cat ~/.ssh/id_ed25519.pub');
  const hostKeys = await Promise.all(others.map((machine) => startSshdOn(machine, publicKey)));
  const known = hostKeys.map((hostKey, index) => `${names[index]} ${hostKey}`);
  await head.must('sh', '-c', `printf '%s\\n' "$@" > ~/.ssh/known_hosts`, 'sh', ...known);
  await head.must('mkdir', '/opt/unpacked');
  await head.must('tar', '-xzf', archive, '-C', '/opt/unpacked');
  const install = ['install', 'coordinator', '--listen', '0.0.0.0:7070', '--allow', 'any'];
  await head.must('/opt/unpacked/muster/bin/muster', ...install);
  return head;
}

async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return rounded((performance.now() - startedMs) / 1_000);
}

/** The same shell command for every host, at the same time; `$0` is the host. */
function onEach(head: BootedMachine, command: string): () => Promise<unknown> {
  return () => Promise.all(targets.map((target) => head.must('sh', '-euc', command, target)));
}

const files = tempDir('release').path;
mkdirSync(join(files, 'muster'));
const native = await nativeParts(release, tempDir('native').path, new AbortController().signal);
await makeTree(join(files, 'muster'), release, native);
const archiveHere = join(files, archive.slice('/srv/'.length));
// As `node add` packs the release that it runs from.
const pack = ['tar', '--create', '--use-compress-program=gzip -1', '-f', archiveHere, '-C', files, 'muster'];
if ((await runProgram(pack, 600_000)).exitCode !== 0) throw new Error('the release could not be packed');
const sum = createHash('sha256').update(readFileSync(archiveHere)).digest('hex');
try {
  const head = await boot(files);
  const addAll = () => head.must('muster', 'node', 'add', '--release', archive, ...targets);
  const removeAll = () =>
    Promise.all(names.map((name) => head.must('muster', 'node', 'remove', name, '--purge')));
  reportMachine();
  const common = { hosts: names.length, busyBeforePercent: await quietMachine() };
  report('floor.ssh', { ...common, s: await secondsOf(onEach(head, 'ssh "$0" true')) });
  const incoming = '/var/cache/muster-node-add';
  await onEach(head, `ssh "$0" mkdir -m 700 ${incoming}`)();
  report('floor.scp', {
    ...common,
    s: await secondsOf(onEach(head, `scp -O -q ${archive} "$0":${incoming}/${sum}.part`)),
    archiveMiB: rounded(statSync(archiveHere).size / 1024 ** 2),
  });
  report('nodeAdd.copiedBefore', { ...common, s: await secondsOf(addAll) });
  report('nodeAdd.again', { ...common, s: await secondsOf(addAll) });
  await removeAll();
  report('nodeAdd.complete', { ...common, s: await secondsOf(addAll) });
} finally {
  await removeMachines();
  await releaseAll();
}
