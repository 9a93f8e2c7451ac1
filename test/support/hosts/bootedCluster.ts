/** Machines that boot, on a network of their own: a coordinator, and nodes that it reaches through ssh and has added. */
import type { Releases } from '../releases.ts';
import { type BootedMachine, bootMachine } from './bootedMachine.ts';
import { connectMachines, startSshdOn } from './machineNetwork.ts';

/** Where each machine sees the archives. */
export const archivesDir = '/media/releases';
export const installedMuster = '/usr/local/bin/muster';

export interface BootedCluster {
  /** With the coordinator, of the admin. */
  readonly head: BootedMachine;
  readonly nodes: readonly BootedMachine[];
  /** May log in to each node, as `startSshdOn` takes it. */
  readonly publicKey: string;
  /** Runs `muster` on the head. @returns its stdout @throws {Error} unless it ends well */
  muster(...argv: readonly string[]): Promise<string>;
  remove(): Promise<void>;
}

/**
 * @param archive name of the one of `releases` that is installed
 * @param nodeCount they are named gpu-1, gpu-2 …, and have one simulated GPU each
 */
export async function bootCluster(
  releases: Releases,
  archive: string,
  nodeCount: number,
): Promise<BootedCluster> {
  const names = Array.from({ length: nodeCount }, (_, index) => `gpu-${index + 1}`);
  const binds = { [archivesDir]: releases.folder };
  const head = await bootMachine('head', binds);
  const nodes = await Promise.all(names.map((name) => bootMachine(name, {})));
  await connectMachines(head, nodes);
  const setUp = [
    'mkdir -p -m 700 ~/.ssh; cd ~/.ssh; rm -f known_hosts config id_ed25519*',
    'ssh-keygen -q -t ed25519 -N "" -f id_ed25519',
    ...names.map((name, index) => `echo "10.77.0.${index + 2} ${name}" >> /etc/hosts`),
    `mkdir /tmp/new; tar -xzf ${archivesDir}/${archive} -C /tmp/new`,
    '/tmp/new/*/bin/muster install coordinator --listen 0.0.0.0:7070 --advertise 10.77.0.1 --allow any; rm -r /tmp/new',
  ];
  await head.must('sh', '-euc', setUp.join('\n'));
  const publicKey = await head.must('sh', '-c', 'cat ~/.ssh/id_ed25519.pub');
  const keys = await Promise.all(nodes.map((node) => startSshdOn(node, publicKey)));
  const known = names.map((name, index) => `${name} ${keys[index]}`);
  await head.must('sh', '-c', `printf '%s\\n' "$@" > ~/.ssh/known_hosts`, 'sh', ...known);
  const muster = (...argv: readonly string[]) => head.must(installedMuster, ...argv);
  const targets = names.map((name) => `root@${name}`);
  await muster('node', 'add', ...targets, '--release', `${archivesDir}/${archive}`, '--set', 'gpus=1');
  return {
    head,
    nodes,
    publicKey,
    muster,
    remove: async () => void (await Promise.all([head, ...nodes].map((machine) => machine.remove()))),
  };
}
