/** Upgrades machines of a cluster through ssh, a wave at a time: each copies the archive and runs `muster upgrade` there. */
import { createReadStream } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { NodeView } from '@muster/common/views';
import { reportsFullDisk } from '../diskSpace.ts';
import { CliError, failureOf, usageError } from '../errors.ts';
import { shellText } from '../output/text.ts';
import { bytesText } from '../output/times.ts';
import type { AddedHost } from '../remote/hostsFile.ts';
import type { ReleaseArchive } from '../remote/releaseArchive.ts';
import type { RemoteShell } from '../remote/remoteShell.ts';
import { parseTarget, type SshTarget } from '../remote/sshTarget.ts';

export interface NodeHost {
  readonly node: string;
  readonly target: SshTarget;
}

/**
 * @param typed `all`, in the order of their names, or names with commas between them; a name may bring its host: `gpu-1=root@10.0.0.7`
 * @param known what `muster node add` has recorded, by node
 * @throws {CliError} for a node without a host, or whose agent is no service of its machine
 */
export function nodeHosts(typed: string, known: Readonly<Record<string, AddedHost>>): readonly NodeHost[] {
  const words =
    typed === 'all' ? Object.keys(known).toSorted(byName) : typed.split(',').filter((word) => word !== '');
  if (words.length === 0)
    throw usageError(
      '--nodes all: no host was recorded by `muster node add`',
      'Name nodes and hosts: --nodes gpu-1=root@10.0.0.7,gpu-2=root@10.0.0.8',
    );
  const hosts = words.map((word) => {
    const [, node = word, host] = /^([^=]*)=(.*)$/.exec(word) ?? [];
    const added = Object.hasOwn(known, node) ? known[node] : undefined;
    if (host === undefined && added?.user === true)
      throw new CliError(`the agent of ${node} runs without root, and \`muster upgrade\` upgrades services`, {
        hints: [`Install the new release over the old one: muster node add ${added.ssh} --user`],
      });
    const ssh = host ?? added?.ssh;
    if (ssh !== undefined) return { node, target: parseTarget(ssh) };
    throw usageError(`no host is known for node ${node}`, `Name it: --nodes ${node}=root@HOST`);
  });
  return [...new Map(hosts.map((host) => [host.node, host])).values()];
}

/** They were recorded as each had joined, which nobody remembers: gpu-2 comes before gpu-10. */
function byName(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true });
}

export interface NodesPlan {
  readonly hosts: readonly NodeHost[];
  readonly archive: Pick<ReleaseArchive, 'path' | 'bytes' | 'sum' | 'version'>;
  /** How many machines at a time. */
  readonly wave: number;
  /** How long each daemon, and then the node, may take to become healthy. */
  readonly waitMs: number;
}

export interface NodesTools {
  openShell(target: SshTarget): RemoteShell;
  listNodes(): Promise<readonly Pick<NodeView, 'name' | 'state' | 'agentVersion'>[]>;
  /** A line for each machine that has ended. */
  print(line: string): Promise<void>;
  readonly signal: AbortSignal;
}

/**
 * @returns whether all have the release; false: interrupted
 * @throws {CliError} once a wave has a machine that was not upgraded: the machines after it are left as they are
 */
export async function upgradeInWaves(plan: NodesPlan, tools: NodesTools): Promise<boolean> {
  const { hosts, wave } = plan;
  for (let first = 0; first < hosts.length; first += wave) {
    const failed: string[] = [];
    const isCalledOff = tools.signal.aborted;
    const now = isCalledOff ? [] : hosts.slice(first, first + wave);
    await Promise.all(
      now.map(async (host) => {
        let isBegun = false;
        try {
          const outcome = await upgradeOne(host, plan, tools, () => (isBegun = true));
          await tools.print(`${host.node}: ${outcome}\n`);
        } catch (error) {
          failed.push(host.node);
          await tools.print(
            `${host.node}: ${tools.signal.aborted ? interrupted(isBegun) : notUpgraded(error)}\n`,
          );
        }
      }),
    );
    if (failed.length === 0 && !isCalledOff) continue;
    const left = hosts.slice(first + now.length).map(({ node }) => node);
    const rest = left.length === 0 ? '' : `${wereNot(left)} touched`;
    if (tools.signal.aborted) {
      if (rest !== '') await tools.print(`${rest}\n`);
      return false;
    }
    throw new CliError(
      `${wereNot(failed)} upgraded to ${plan.archive.version}${rest === '' ? '' : `; ${rest}`}`,
      {
        hints: [
          'The reason is in the line of each. The same command continues: machines that have the release are left alone.',
        ],
      },
    );
  }
  return true;
}

/** A machine that has begun finishes without this call. */
function interrupted(isBegun: boolean): string {
  return isBegun ? 'interrupted; the upgrade there continues' : 'not upgraded: interrupted';
}

function notUpgraded(error: unknown): string {
  const { message, hints } = failureOf(error);
  return [`not upgraded: ${message}`, ...hints].join('\n  ');
}

function wereNot(nodes: readonly string[]): string {
  return `${nodes.join(', ')} ${nodes.length === 1 ? 'was' : 'were'} not`;
}

/** For root alone; programs are not run from it. Each call has a folder of its own in it: two admins may upgrade at the same time. */
const incoming = '/var/cache/muster-upgrade';

/** @returns what became of it @throws {CliError} */
async function upgradeOne(
  { node, target }: NodeHost,
  { archive, waitMs }: NodesPlan,
  tools: NodesTools,
  onBegin: () => void,
): Promise<string> {
  const before = (await tools.listNodes()).find(({ name }) => name === node);
  if (before === undefined) throw new CliError(`the cluster has no node ${node}`);
  if (before.agentVersion === archive.version && before.state === 'online')
    return `has ${archive.version} already`;
  const login = tools.openShell(target);
  const isRoot = (await login.must('id -u')).stdout.trim() === '0';
  const shell = login.elevated(!isRoot);
  const input = createReadStream(archive.path);
  const received = await shell.run(receiveArchive(archive), { input }).finally(() => input.destroy());
  if (received.exitCode !== 0) throw notReceived(shell.host, received.stderr, archive.bytes);
  const folder = received.stdout.trim();
  const wait = `${Math.ceil(waitMs / 1_000)}s`;
  onBegin();
  try {
    await shell.must(runUpgrade(`${folder}/muster-${archive.version}.tar.gz`, wait));
  } finally {
    await shell.run(`rm -rf ${shellText([folder])}`).catch(() => {});
  }
  await untilBack(node, archive.version, waitMs, tools);
  return `upgraded from ${before.agentVersion} to ${archive.version}`;
}

/** Writes the folder to its output. What a call that was cut off has left goes a day later. */
function receiveArchive({ sum, version }: NodesPlan['archive']): string {
  const file = `"$d"/${shellText([`muster-${version}.tar.gz`])}`;
  return [
    'set -eu; umask 077',
    `mkdir -p ${incoming}; find ${incoming} -mindepth 1 -maxdepth 1 -mmin +1440 -exec rm -rf {} +`,
    `d=$(mktemp -d ${incoming}/XXXXXX); trap 'rm -rf "$d"' EXIT`,
    `cat >${file}`,
    `[ "$(sha256sum <${file} | cut -d ' ' -f 1)" = ${sum} ] || { echo "what arrived differs from what was sent" >&2; exit 1; }`,
    `trap - EXIT; echo "$d"`,
  ].join('; ');
}

function notReceived(host: string, stderr: string, bytes: number): CliError {
  const line = stderr.trim().split('\n').at(-1) ?? '';
  if (!reportsFullDisk(stderr)) return new CliError(`${host}: ${line || 'the archive was not copied'}`);
  return new CliError(
    `the disk of ${host} is full: the archive (${bytesText(bytes)}) does not fit into /var/cache`,
    {
      code: 'resource_exhausted',
      hints: ['Nothing was changed there. Which folders are large: du -xh --max-depth=2 / | sort -h | tail'],
    },
  );
}

/** Where Muster is Debian's package, that one says how it is upgraded. */
function runUpgrade(file: string, wait: string): string {
  return [
    'm=/opt/muster/current/bin/muster; [ -x $m ] || m=muster',
    `exec $m ${shellText(['upgrade', file, '--wait', wait])}`,
  ].join('; ');
}

const pollMs = 500;

/** The coordinator has to see it too: an agent that runs and is refused is of no use. */
async function untilBack(
  node: string,
  version: string,
  waitMs: number,
  { listNodes, signal }: NodesTools,
): Promise<void> {
  for (let waitedMs = 0; ; waitedMs += pollMs) {
    const seen = (await listNodes()).find(({ name }) => name === node);
    if (seen?.state === 'online' && seen.agentVersion === version) return;
    if (waitedMs >= waitMs)
      throw new CliError(
        `the coordinator sees it ${seen?.state ?? 'no longer'} with version ${seen?.agentVersion ?? 'none'}`,
        { hints: ['Its log, on that machine: journalctl -u muster-agent'] },
      );
    await sleep(pollMs, undefined, { signal });
  }
}
