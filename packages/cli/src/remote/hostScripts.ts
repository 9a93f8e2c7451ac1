/**
 * What `muster node add` has a machine do before Muster is there: scripts of a POSIX shell, with the programs that every Linux
 * has. Pure. They hold no secrets: every user of the machine sees them.
 */
import { shellText } from '../output/text.ts';
import type { ReleaseArchive } from './releaseArchive.ts';

/** How the agent is installed: as a service of the system, or as the user that logs in. */
export type AgentMode = 'system' | 'user';

/** As expressions of the shell. */
interface Places {
  readonly incoming: string;
  readonly current: string;
  readonly dataDir: string;
  readonly config: string;
}

const placesOf: Readonly<Record<AgentMode, Places>> = {
  system: {
    // The programs in it are run, which /tmp may not allow.
    incoming: '/var/cache/muster-node-add',
    current: '/opt/muster/current',
    dataDir: '/var/lib/muster-agent',
    config: '/etc/muster/agent.yaml',
  },
  user: {
    incoming: '"$HOME"/.cache/muster-node-add',
    current: '"$HOME"/.local/share/muster/releases/current',
    dataDir: '"$HOME"/.local/share/muster-agent',
    config: '"$HOME"/.config/muster/agent.yaml',
  },
};

/** Exit codes of the scripts below, beside those of the programs that they call. */
export const scriptExits = { busy: 75, changed: 76, wrongSum: 77, incomplete: 78 } as const;

/** What a machine says of itself. */
export interface MachineReport {
  readonly kernel: string;
  /** As `uname` names it. */
  readonly machine: string;
  readonly hasGlibc: boolean;
  readonly isRoot: boolean;
  readonly hasSudo: boolean;
  readonly hasSystemd: boolean;
  readonly hostname: string;
  /** Sum of the list of sums of the release that is installed; empty: none. */
  readonly installed: string;
  /** How much of the archive is there. */
  readonly partBytes: number;
  /** The archive is there, compared and unpacked. */
  readonly isUnpacked: boolean;
  /** An agent has joined a cluster, by this name and at this address; empty: not known. */
  readonly hasJoined: boolean;
  readonly node: string;
  readonly coordinator: string;
  /** Networks were allowed to the agent's unit. */
  readonly hasNetworks: boolean;
}

type Archive = Pick<ReleaseArchive, 'sum' | 'bytes'>;

export function probeScript({ sum }: Pick<Archive, 'sum'>, mode: AgentMode): string {
  const { incoming, current, dataDir, config } = placesOf[mode];
  const value = (key: string) => `sed -n 's/^${key}: *//p' ${config} 2>/dev/null | head -n 1`;
  return [
    'LC_ALL=C; export LC_ALL; s=',
    '[ "$(id -u)" = 0 ] || { sudo -n true 2>/dev/null && s="sudo -n"; }',
    'echo "uid=$(id -u)"; echo "sudo=$s"',
    'echo "kernel=$(uname -s)"; echo "machine=$(uname -m)"',
    'echo "libc=$(getconf GNU_LIBC_VERSION 2>/dev/null)"',
    'echo "hostname=$(cat /proc/sys/kernel/hostname)"',
    'if [ -d /run/systemd/system ]; then echo systemd=yes; fi',
    `echo "installed=$(sha256sum ${current}/lib/muster/SHA256SUMS 2>/dev/null | cut -d ' ' -f 1)"`,
    `echo "part=$($s stat -c %s ${incoming}/${sum}.part 2>/dev/null)"`,
    `if $s test -d ${incoming}/${sum}; then echo unpacked=yes; fi`,
    `if $s test -e ${dataDir}/credential; then echo joined=yes; fi`,
    `echo "node=$(${value('name')})"; echo "coordinator=$(${value('coordinator')})"`,
    'if [ -e /etc/systemd/system/muster-agent.service.d/network.conf ]; then echo networks=yes; fi',
  ].join('; ');
}

/** @param text what `probeScript` wrote */
export function parseFacts(text: string): MachineReport {
  const lines = text.split('\n').map((line) => /^(\w+)=(.*)$/.exec(line));
  const found = new Map(lines.map((line) => [line?.[1] ?? '', line?.[2]?.trim() ?? '']));
  const value = (key: string) => found.get(key) ?? '';
  return {
    kernel: value('kernel'),
    machine: value('machine'),
    hasGlibc: value('libc').startsWith('glibc'),
    isRoot: value('uid') === '0',
    hasSudo: value('sudo') !== '',
    hasSystemd: value('systemd') === 'yes',
    hostname: value('hostname'),
    installed: value('installed'),
    partBytes: Number(value('part')) || 0,
    isUnpacked: value('unpacked') === 'yes',
    hasJoined: value('joined') === 'yes',
    node: withoutQuotes(value('node')),
    coordinator: withoutQuotes(value('coordinator')),
    hasNetworks: value('networks') === 'yes',
  };
}

function withoutQuotes(text: string): string {
  return text.replace(/^(["'])(.*)\1$/, '$2');
}

/** Appends its input to what is there of the archive. One at a time: two writers would mix. */
export function receiveScript({ sum }: Pick<Archive, 'sum'>, offset: number, mode: AgentMode): string {
  const { incoming } = placesOf[mode];
  const part = `${incoming}/${sum}.part`;
  return [
    'set -eu; umask 077',
    `mkdir -p ${incoming}`,
    `exec 9>>${incoming}/lock`,
    `if command -v flock >/dev/null; then flock -w 60 9 || exit ${scriptExits.busy}; fi`,
    `[ "$(stat -c %s ${part} 2>/dev/null || echo 0)" = ${offset} ] || exit ${scriptExits.changed}`,
    `exec cat >>${part}`,
  ].join('; ');
}

/** Compares the archive, and gives its content a name only once all of it is there. */
export function unpackScript({ sum, bytes }: Archive, mode: AgentMode): string {
  const { incoming } = placesOf[mode];
  const part = `${incoming}/${sum}.part`;
  const folder = `${incoming}/${sum}`;
  return [
    'set -eu; umask 022',
    `n=$(stat -c %s ${part} 2>/dev/null || echo 0)`,
    // Nothing can be appended to one that is longer.
    `[ "$n" -le ${bytes} ] || rm -f ${part}`,
    `[ "$n" = ${bytes} ] || exit ${scriptExits.incomplete}`,
    `[ "$(sha256sum <${part} | cut -d ' ' -f 1)" = ${sum} ] || { rm -f ${part}; exit ${scriptExits.wrongSum}; }`,
    `rm -rf ${folder}.new; mkdir ${folder}.new`,
    `tar -xzo -f ${part} --strip-components=1 -C ${folder}.new`,
    `mv ${folder}.new ${folder}; rm -f ${part}`,
  ].join('; ');
}

/** Puts the unpacked release where the agent of a user runs it; the service of a system is copied by `muster install`. */
export function placeForUserScript({ sum, release }: Pick<ReleaseArchive, 'sum' | 'release'>): string {
  const { incoming, current } = placesOf.user;
  const folder = `"$r"/${release.slice(0, 16)}`;
  return [
    `set -eu; r=$(dirname ${current}); mkdir -p "$r"`,
    // What lies there under this name may be damaged.
    `rm -rf ${folder}.old; if [ -e ${folder} ]; then mv ${folder} ${folder}.old; fi`,
    `mv ${incoming}/${sum} ${folder}; rm -rf ${folder}.old`,
    `ln -sfn ${release.slice(0, 16)} "$r"/current.new; mv -T "$r"/current.new "$r"/current`,
  ].join('; ');
}

export function tidyScript(mode: AgentMode): string {
  return `rm -rf ${placesOf[mode].incoming}`;
}

/**
 * Runs Muster there.
 * @param unpacked sum of the archive that was unpacked; null: the release that is installed
 */
export function musterScript(
  argv: readonly string[],
  mode: AgentMode,
  unpacked: string | null = null,
): string {
  const { incoming, current } = placesOf[mode];
  const top = unpacked === null ? current : `${incoming}/${unpacked}`;
  return `exec ${top}/bin/muster ${shellText(argv)}`;
}

/** Waits until something listens on a port of the machine's loopback interface. */
export function waitForPortScript(port: number, mode: AgentMode, unpacked: string | null): string {
  const { incoming, current } = placesOf[mode];
  const top = unpacked === null ? current : `${incoming}/${unpacked}`;
  const program =
    `const dial = (left) => { const socket = require('node:net').connect(${port}, '127.0.0.1').on('connect', () => socket.destroy())` +
    `.on('error', () => { if (left > 0) setTimeout(dial, 250, left - 1); else process.exitCode = 1; }); }; dial(240)`;
  return `exec ${top}/lib/muster/node -e ${shellText([program])}`;
}
