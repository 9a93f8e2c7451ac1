/** A machine with a coordinator, and machines beside it that it can reach through ssh and make into nodes. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { nativeParts } from '../../../scripts/package/native.mjs';
import { makeTree } from '../../../scripts/package/tree.mjs';
import { tempDir } from '../services.ts';
import { type BootedMachine, bootMachine } from './bootedMachine.ts';
import { connectMachines, startSshdOn } from './machineNetwork.ts';

const release = {
  version: '0.1.0',
  arch: process.arch as 'x64' | 'arm64',
  commit: '0123456789abcdef0123456789abcdef01234567',
  epochS: 1_700_000_000,
};
/** On the machine of the admin, once it is installed. */
export const installedMuster = '/usr/local/bin/muster';

/** As `muster node add -o json` tells it. */
export interface AddedHost {
  readonly ssh: string;
  readonly node: string | null;
  readonly error: string | null;
  readonly hint: string | null;
}

export interface HostsToAdd<Name extends string> {
  /** Of the admin, with the coordinator. */
  readonly head: BootedMachine;
  /** What logs in as root, and as every other user of the hosts. */
  readonly publicKey: string;
  at(name: Name): BootedMachine;
  /** @param wrong whose key is known as another one */
  know(wrong?: Name): Promise<void>;
  add(...words: readonly string[]): Promise<{
    readonly of: (ssh: string) => AddedHost | undefined;
    readonly stderr: string;
    readonly exitCode: number | null;
  }>;
  /** State of each node, by its name. */
  nodes(): Promise<ReadonlyMap<string, string>>;
  remove(): Promise<void>;
}

/**
 * @param names the hosts, which are 10.77.0.2, 10.77.0.3 … in their order
 * @param prepare more lines of the script that sets up the machine of the admin
 */
export async function hostsToAdd<Name extends string>(
  names: readonly Name[],
  prepare: readonly string[] = [],
): Promise<HostsToAdd<Name>> {
  const tree = join(tempDir('release').path, 'muster');
  const native = tempDir('native').path;
  mkdirSync(tree);
  await makeTree(tree, release, await nativeParts(release, native, new AbortController().signal));
  const [head, ...hosts] = await Promise.all([
    bootMachine('head', { '/srv/muster': tree }),
    // Agents of users are kept by logind.
    ...names.map((name) => bootMachine(name, {}, ['systemd-logind.service'])),
  ]);
  const at = (name: Name) => hosts[names.indexOf(name)] ?? head;
  await connectMachines(head, hosts);
  const setUp = [
    'mkdir -p -m 700 ~/.ssh; cd ~/.ssh; rm -f known_hosts config',
    'ssh-keygen -q -t ed25519 -N "" -f id_ed25519',
    ...names.map((name, index) => `echo "10.77.0.${index + 2} ${name}" >> /etc/hosts`),
    ...prepare,
  ];
  await head.must('sh', '-euc', setUp.join('\n'));
  const publicKey = await head.must('sh', '-c', 'cat ~/.ssh/id_ed25519.pub');
  const hostKeys = new Map<Name, string>();
  await Promise.all([
    ...names.map(async (name) => hostKeys.set(name, await startSshdOn(at(name), publicKey))),
    head.must(
      '/srv/muster/bin/muster',
      'install',
      'coordinator',
      '--listen',
      '0.0.0.0:7070',
      '--allow',
      'any',
    ),
  ]);
  return {
    head,
    publicKey,
    at,
    async know(wrong) {
      const other = names.find((name) => name !== wrong);
      const keyOf = (name: Name) => hostKeys.get(name === wrong ? (other ?? name) : name);
      const lines = names.map((name) => `${name} ${keyOf(name)}`);
      await head.must('sh', '-c', `printf '%s\\n' "$@" > ~/.ssh/known_hosts`, 'sh', ...lines);
    },
    async add(...words) {
      const call = [installedMuster, 'node', 'add', ...words, '-o', 'json'];
      const { stdout, stderr, exitCode } = await head.run(...call);
      const { hosts: list } = JSON.parse(stdout || '{"hosts":[]}') as { hosts: readonly AddedHost[] };
      return { of: (ssh) => list.find((each) => each.ssh === ssh), stderr, exitCode };
    },
    async nodes() {
      const { nodes: list } = JSON.parse(await head.must(installedMuster, 'nodes', '-o', 'json')) as {
        nodes: readonly { readonly name: string; readonly state: string }[];
      };
      return new Map(list.map(({ name, state }) => [name, state]));
    },
    async remove() {
      await Promise.all([head, ...hosts].map((machine) => machine.remove()));
    },
  };
}
