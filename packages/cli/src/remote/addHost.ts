/**
 * Makes one machine a node: looks at it, copies the release, installs the agent with a token of its own, and waits until the node
 * is online. Each step finds what an earlier run has done, and continues there.
 */
import { createReadStream } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DoctorReport } from '@muster/agent/doctor/doctorReport';
import { isNodeName } from '@muster/common/ids';
import { toLabel } from '@muster/common/spec/forms';
import type { NodeView } from '@muster/common/views';
import type { MusterApi } from '@muster/common/wire/client';
import { reportsFullDisk } from '../diskSpace.ts';
import { CliError, failureOf } from '../errors.ts';
import {
  type AgentMode,
  type MachineReport,
  musterScript,
  parseFacts,
  placeForUserScript,
  probeScript,
  receiveScript,
  scriptExits,
  tidyScript,
  unpackScript,
  waitForPortScript,
} from './hostScripts.ts';
import type { ReleaseArchive } from './releaseArchive.ts';
import type { RemoteShell } from './remoteShell.ts';

export interface AddPlan {
  readonly archive: ReleaseArchive;
  readonly mode: AgentMode;
  /** What the agent dials: `host:port`. */
  readonly coordinator: string;
  /** Port of the machine's loopback interface behind which the coordinator is, through a tunnel; null: it is reached directly. */
  readonly tunnelPort: number | null;
  /** null: the host name of the machine. */
  readonly name: string | null;
  /** A node of this name may be another machine's: that one's credential ends. */
  readonly replace: boolean;
  /** Networks that the unit lets in and out; null: any, on a machine that has no choice of its own. */
  readonly allow: readonly string[] | null;
  /** Settings of the agent, KEY=VALUE. */
  readonly settings: readonly string[];
}

export interface AddTools {
  readonly shell: RemoteShell;
  readonly api: Pick<MusterApi, 'listNodes' | 'createJoinToken'>;
  /** What is being done, for people. */
  readonly show: (step: string) => void;
  /** Called before anything of Muster is started there. */
  readonly onChosen: (node: string) => void;
  /** Brings the tunnel to a machine up. */
  readonly openTunnel: (node: string, port: number) => void;
  readonly signal: AbortSignal;
}

export interface AddedNode {
  readonly node: string;
  readonly gpus: number;
  /** What `doctor` found wrong there. */
  readonly findings: DoctorReport['checks'];
}

/** @throws {CliError} with what was wrong and the remedy; the next call continues where this one ended */
export async function addHost(plan: AddPlan, tools: AddTools): Promise<AddedNode> {
  const { archive, mode, coordinator, tunnelPort } = plan;
  const { shell, show } = tools;
  show('connecting');
  const facts = parseFacts((await shell.must(probeScript(archive, mode))).stdout);
  requireFit(facts, plan, shell.host);
  const sudo = mode === 'system' && !facts.isRoot;
  const root = shell.elevated(sudo);
  const node = nodeName(plan, facts, shell.host);
  const known = (await tools.api.listNodes()).find(({ name }) => name === node) ?? null;
  const isMember = facts.hasJoined && facts.node === node && facts.coordinator === coordinator;
  requireOwnName(node, known, isMember, plan, facts);

  let unpacked: string | null = null;
  if (facts.installed !== archive.release) {
    if (!facts.isUnpacked) await copyRelease(plan, facts, { ...tools, shell: root });
    if (mode === 'user') await root.must(placeForUserScript(archive));
    else unpacked = archive.sum;
  }
  tools.onChosen(node);
  if (tunnelPort !== null) {
    show('opening the tunnel');
    tools.openTunnel(node, tunnelPort);
    const waited = await root.run(waitForPortScript(tunnelPort, mode, unpacked));
    if (waited.exitCode !== 0) throw tunnelDown(node, tunnelPort, shell.host);
  }
  show('installing');
  // A member that is known has what it needs, unless its certificate has expired; one that was removed joins again.
  const token =
    isMember && known !== null && !plan.replace
      ? null
      : (await tools.api.createJoinToken(node, plan.replace || known !== null)).token;
  const words = installWords(plan, node, facts, token !== null);
  const installing = () =>
    root.must(musterScript(words, mode, unpacked), token === null ? {} : { input: `${token}\n` });
  if (token !== null && facts.hasJoined && mode === 'system') {
    const checked = [...installWords(plan, node, facts, false), '--dry-run'];
    await root.must(musterScript(checked, mode, unpacked));
    await whileAgentStopped(root, installing);
  } else {
    await installing();
  }
  show('waiting for the node');
  const { inventory } = await onlineNode(node, tools, root, mode);
  show('examining');
  const findings = await examine(root, mode);
  await root.run(tidyScript(mode));
  return { node, gpus: inventory.gpus.length, findings };
}

const startWithinMs = 60_000;

/**
 * An agent reads its token when it starts; its tasks keep running meanwhile. Its earlier credential is good until the token is used.
 * @throws {CliError} when the work fails, after the agent was started again
 */
async function whileAgentStopped(root: RemoteShell, work: () => Promise<unknown>): Promise<void> {
  try {
    await root.run('systemctl stop muster-agent');
    await work();
  } catch (error) {
    // An interrupt ends the other scripts, and not this one.
    const signal = AbortSignal.timeout(startWithinMs);
    const isStarted = await root.run('systemctl start muster-agent', { signal }).then(
      ({ exitCode }) => exitCode === 0,
      () => false,
    );
    const { message, code, hints } = failureOf(error);
    const outcome = isStarted
      ? 'Its agent was started again.'
      : 'Its agent is stopped. On that machine: systemctl start muster-agent';
    throw new CliError(message, { code, hints: [...hints, outcome], cause: error });
  }
}

/** As `uname -m` names what Node names otherwise. */
const machines: Readonly<Record<string, string>> = { x64: 'x86_64', arm64: 'aarch64' };

function requireFit(facts: MachineReport, { archive, mode }: AddPlan, host: string): void {
  if (facts.kernel !== 'Linux')
    throw new CliError(`${host} runs ${facts.kernel || 'no Linux'}; nodes run Linux`);
  if (machines[archive.arch] !== facts.machine) {
    const there = Object.entries(machines).find(([, machine]) => machine === facts.machine)?.[0];
    throw new CliError(`${host} is ${facts.machine}, and the release is for ${archive.arch}`, {
      hints:
        there === undefined
          ? []
          : [`Name one for it: --release muster-${archive.version}-linux-${there}.tar.gz`],
    });
  }
  if (!facts.hasGlibc) throw new CliError(`${host} has no glibc, which the release needs`);
  if (mode === 'user') return;
  if (!facts.isRoot && !facts.hasSudo) {
    throw new CliError(`services of ${host} take root, and sudo asks there for a password`, {
      code: 'permission_denied',
      hints: [
        'Log in as root@HOST, or let this user call sudo without a password, or install without root: --user',
      ],
    });
  }
  if (!facts.hasSystemd)
    throw new CliError(`${host} is not run by systemd, which starts the services`, {
      hints: ['Without it the agent runs as the user that logs in: --user'],
    });
}

function nodeName({ name }: AddPlan, facts: MachineReport, host: string): string {
  const node = name ?? toLabel(facts.hostname);
  if (isNodeName(node)) return node;
  throw new CliError(`the host name of ${host}, "${facts.hostname}", makes no name of a node`, {
    hints: ['Name it: --name NODE'],
  });
}

/** A name that another machine has is not taken away from it by accident. */
function requireOwnName(
  node: string,
  known: NodeView | null,
  isMember: boolean,
  { replace, coordinator }: AddPlan,
  facts: MachineReport,
): void {
  if (known === null || isMember || replace) return;
  const why = facts.hasJoined
    ? `this machine has joined as ${facts.node || 'another node'} at ${facts.coordinator || 'another address'}, not at ${coordinator}`
    : 'this machine has no credential of it';
  throw new CliError(`the cluster has a node ${node} already, and ${why}`, {
    code: 'already_exists',
    hints: [
      `If it is another machine: --name ANOTHER. If this one was reinstalled, or is to replace it: --replace`,
    ],
  });
}

const attemptsMax = 3;

async function copyRelease(
  { archive, mode }: AddPlan,
  facts: MachineReport,
  { shell, show }: AddTools,
): Promise<void> {
  let offset = facts.partBytes;
  for (let attempt = 1; ; attempt += 1) {
    // More than there is cannot be a part of it, and is removed where it would be unpacked.
    if (offset < archive.bytes) await send(archive, offset, mode, shell, show);
    show('unpacking');
    const { exitCode, stderr } = await shell.run(unpackScript(archive, mode));
    if (exitCode === 0) return;
    const isWrong = exitCode === scriptExits.wrongSum || exitCode === scriptExits.incomplete;
    if (!isWrong || attempt === attemptsMax) {
      if (reportsFullDisk(stderr)) throw diskFull(shell.host, mode);
      const why = isWrong ? 'what arrived there differs from what was sent' : lastLine(stderr);
      throw new CliError(`the release was not unpacked on ${shell.host}: ${why}`);
    }
    offset = 0;
  }
}

async function send(
  archive: ReleaseArchive,
  offset: number,
  mode: AgentMode,
  shell: RemoteShell,
  show: (step: string) => void,
): Promise<void> {
  const file = createReadStream(archive.path, { start: offset });
  let sent = offset;
  file.on('data', (piece) => {
    sent += piece.length;
    show(`copying ${Math.floor((100 * sent) / archive.bytes)} %`);
  });
  const { exitCode, stderr } = await shell.run(receiveScript(archive, offset, mode), { input: file });
  file.destroy();
  if (exitCode === 0) return;
  if (reportsFullDisk(stderr)) throw diskFull(shell.host, mode);
  const isOther = exitCode === scriptExits.busy || exitCode === scriptExits.changed;
  throw new CliError(
    isOther
      ? `another call of \`muster node add\` copies to ${shell.host} at this moment`
      : `the release was not copied to ${shell.host}: ${lastLine(stderr)}`,
    { hints: ['What has arrived stays, and the same command continues there.'] },
  );
}

function diskFull(host: string, mode: AgentMode): CliError {
  const place = mode === 'user' ? 'the home directory' : '/var/cache';
  return new CliError(`the disk of ${host} is full: the release does not fit into ${place}`, {
    code: 'resource_exhausted',
    hints: [
      'The archive and its content have to fit there at the same time. Which folders are large: du -xh --max-depth=2 / | sort -h | tail',
      'What has arrived stays, and the same command continues there.',
    ],
  });
}

function installWords(
  { mode, coordinator, allow, settings, tunnelPort }: AddPlan,
  node: string,
  facts: MachineReport,
  hasToken: boolean,
): readonly string[] {
  const networks = allow ?? (facts.hasNetworks || tunnelPort !== null ? [] : ['any']);
  return [
    'install',
    'agent',
    ...(mode === 'user' ? ['--user'] : networks.flatMap((network) => ['--allow', network])),
    '--name',
    node,
    '--coordinator',
    coordinator,
    ...settings.flatMap((setting) => ['--set', setting]),
    ...(hasToken ? ['--join-token-file', '-'] : []),
  ];
}

const onlinePollMs = 250;
const onlineWithinMs = 120_000;

async function onlineNode(
  name: string,
  { api, signal }: AddTools,
  shell: RemoteShell,
  mode: AgentMode,
): Promise<NodeView> {
  for (let waitedMs = 0; waitedMs < onlineWithinMs; waitedMs += onlinePollMs) {
    const node = (await api.listNodes()).find((each) => each.name === name);
    if (node?.state === 'online') return node;
    if (!signal.aborted) await sleep(onlinePollMs, undefined, { signal }).catch(() => {});
    if (signal.aborted) throw new CliError('interrupted');
  }
  const log =
    mode === 'user'
      ? 'tail -n 3 "$HOME"/.local/share/muster-agent/agent.log'
      : 'journalctl -u muster-agent -n 3 -o cat --no-pager -q';
  const { stdout } = await shell.run(log);
  const isExpired = stdout.includes(`certificate of node ${name} expired`);
  throw new CliError(`the agent on ${shell.host} runs, but its node is not online after 2 min`, {
    code: 'deadline_exceeded',
    hints: [
      ...stdout.split('\n').filter((line) => line.trim() !== ''),
      isExpired
        ? 'The same command with --replace gives it another certificate; its tasks stay.'
        : 'Repeat the command once that is fixed.',
    ],
  });
}

/** @returns what is wrong; empty as well where the examination itself failed, which is a finding of its own */
async function examine(shell: RemoteShell, mode: AgentMode): Promise<DoctorReport['checks']> {
  const which = mode === 'user' ? [] : ['--service', 'agent'];
  const { stdout, stderr } = await shell.run(musterScript(['doctor', ...which, '-o', 'json'], mode));
  try {
    const { checks } = JSON.parse(stdout) as DoctorReport;
    return checks.filter(({ area, state }) => area !== 'coordinator' && state === 'problem');
  } catch {
    const message = `muster doctor gave no answer: ${lastLine(stderr)}`;
    return [
      {
        area: 'this machine',
        name: 'examination',
        state: 'problem',
        chosen: false,
        message,
        evidence: null,
        remedy: null,
      },
    ];
  }
}

function tunnelDown(node: string, port: number, host: string): CliError {
  return new CliError(`the tunnel to ${host} does not come up: nothing listens there on 127.0.0.1:${port}`, {
    code: 'unavailable',
    hints: [
      `Its log: journalctl -u muster-tunnel-${node}, or journalctl --user -u muster-tunnel-${node}`,
      'If the port is taken there, choose another one: --tunnel-port PORT',
      'The unit has no ssh-agent: the key needs a file without a passphrase.',
    ],
  });
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1)?.trim() || 'no reason was given';
}
