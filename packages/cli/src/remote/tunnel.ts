/** A way to the coordinator for machines that cannot reach it: `ssh -R`, kept up by a unit of systemd on this machine. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findProgram, makeDirectories, writeFileDurably } from '@muster/common/files';
import type { ProgramEnvironment } from '../environment.ts';
import { CliError } from '../errors.ts';
import { unattendedSsh } from './ssh.ts';
import type { SshTarget } from './sshTarget.ts';

export interface Tunnel {
  readonly target: SshTarget;
  /** Of the loopback interface there. */
  readonly port: number;
  /** `host:port` by which this machine reaches the coordinator. */
  readonly coordinator: string;
}

type Here = Pick<ProgramEnvironment, 'uid' | 'home' | 'variables'>;

/**
 * The other end is loopback only: nobody but programs of that machine reaches the coordinator through it.
 * @param ssh absolute path of the program
 */
export function tunnelUnit(
  node: string,
  { target, port, coordinator }: Tunnel,
  ssh: string,
  isUser: boolean,
): string {
  const options = [
    ...unattendedSsh,
    '-o',
    'ExitOnForwardFailure=yes',
    '-o',
    'ControlMaster=no',
    '-o',
    'ControlPath=none',
  ];
  const argv = [ssh, '-N', '-T', ...options, '-R', `127.0.0.1:${port}:${coordinator}`, '--', target.text];
  const wantedBy = isUser ? 'default.target' : 'multi-user.target';
  return [
    '# Written by `muster node add --tunnel`; `muster node remove` removes it.',
    '[Unit]',
    `Description=Muster tunnel: the coordinator at 127.0.0.1:${port} of ${node}`,
    'After=network.target',
    // Never given up: without it the node is silent.
    'StartLimitIntervalSec=0',
    '',
    '[Service]',
    `ExecStart=${argv.join(' ')}`,
    'Restart=always',
    'RestartSec=2',
    '',
    '[Install]',
    `WantedBy=${wantedBy}`,
    '',
  ].join('\n');
}

/** Writes the unit and starts it; one that runs as it should is left alone. @throws {CliError} */
export function openTunnel(node: string, tunnel: Tunnel, here: Here): void {
  if (!existsSync('/run/systemd/system')) {
    throw new CliError('a tunnel is kept up by systemd, which does not run this machine', {
      hints: ['Call this on a machine with systemd that reaches the coordinator and the host.'],
    });
  }
  const ssh = findProgram('ssh', here.variables['PATH'] ?? '') ?? '/usr/bin/ssh';
  const isUser = here.uid !== 0;
  const path = unitPath(node, here);
  const text = tunnelUnit(node, tunnel, ssh, isUser);
  const isSame = existsSync(path) && readFileSync(path, 'utf8') === text;
  if (!isSame) {
    makeDirectories(dirname(path), 0o755);
    writeFileDurably(path, text, 0o644);
    systemctl(['daemon-reload'], here);
  }
  systemctl(['enable', '--quiet', unitName(node)], here);
  systemctl([isSame ? 'start' : 'restart', unitName(node)], here);
  // Without it a user's units end with their last login here.
  if (isUser) spawnSync('loginctl', ['enable-linger'], { env: here.variables, stdio: 'ignore' });
}

/** Nothing happens where there is none. @throws {CliError} */
export function closeTunnel(node: string, here: Here): void {
  const path = unitPath(node, here);
  if (!existsSync(path)) return;
  systemctl(['disable', '--quiet', '--now', unitName(node)], here);
  rmSync(path);
  systemctl(['daemon-reload'], here);
}

function unitName(node: string): string {
  return `muster-tunnel-${node}.service`;
}

function unitPath(node: string, { uid, home }: Here): string {
  return join(uid === 0 ? '/etc/systemd/system' : join(home, '.config/systemd/user'), unitName(node));
}

function systemctl(args: readonly string[], { uid, variables }: Here): void {
  const whole = [...(uid === 0 ? [] : ['--user']), ...args];
  const { status, stderr } = spawnSync('systemctl', whole, { env: variables, encoding: 'utf8' });
  if (status === 0) return;
  throw new CliError(`systemctl ${whole.join(' ')} failed: ${(stderr ?? '').trim().split('\n').at(-1)}`);
}
