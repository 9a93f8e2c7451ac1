/** A real OpenSSH server on a port of this machine, into which the user of the tests can log in. */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { findProgram, freePort, sshServer, tempDir, waitFor } from './services.ts';

export interface RunningSshd {
  /** As `ssh` takes it, with the variables below. */
  readonly target: string;
  readonly port: number;
  /** PATH with an `ssh` in front that knows the key, the port and the host keys. */
  readonly variables: Readonly<Record<string, string>>;
  /** Which host keys `ssh` knows. */
  readonly knownHostsPath: string;
  /** Line of `known_hosts` for the key that the server has. */
  readonly knownHost: string;
  /** Which keys may log in. */
  readonly authorizedKeysPath: string;
  stop(): Promise<void>;
}

export async function startSshd(): Promise<RunningSshd> {
  const program = sshServer();
  const dir = tempDir('sshd').path;
  const at = (name: string) => join(dir, name);
  for (const name of ['host_key', 'user_key'])
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', at(name)]);
  const port = await freePort();
  const publicKey = (name: string) =>
    execFileSync('ssh-keygen', ['-y', '-f', at(name)], { encoding: 'utf8' });
  writeFileSync(at('authorized_keys'), publicKey('user_key'), { mode: 0o600 });
  const knownHost = `[127.0.0.1]:${port} ${publicKey('host_key')}`;
  writeFileSync(at('known_hosts'), knownHost);
  // Where root's sshd puts its helpers; a machine that never ran it has none.
  if (process.getuid?.() === 0 && !existsSync('/run/sshd')) mkdirSync('/run/sshd', { mode: 0o755 });
  const settings = [
    `Port ${port}`,
    'ListenAddress 127.0.0.1',
    `HostKey ${at('host_key')}`,
    `AuthorizedKeysFile ${at('authorized_keys')}`,
    `PidFile ${at('sshd.pid')}`,
    'PasswordAuthentication no',
    'KbdInteractiveAuthentication no',
    'PermitRootLogin yes',
    // The folders above are temporary, and others may write to /tmp.
    'StrictModes no',
    'UsePAM no',
  ];
  writeFileSync(at('sshd_config'), `${settings.join('\n')}\n`);
  const server = spawn(program, ['-D', '-e', '-f', at('sshd_config')], { stdio: 'ignore' });
  const client = [
    'Host *',
    `  Port ${port}`,
    `  IdentityFile ${at('user_key')}`,
    '  IdentitiesOnly yes',
    '  IdentityAgent none',
    `  UserKnownHostsFile ${at('known_hosts')}`,
    '  GlobalKnownHostsFile none',
  ];
  writeFileSync(at('ssh_config'), `${client.join('\n')}\n`);
  mkdirSync(at('bin'));
  const real = findProgram('ssh') ?? 'ssh';
  writeFileSync(at('bin/ssh'), `#!/bin/sh\nexec '${real}' -F '${at('ssh_config')}' "$@"\n`, { mode: 0o755 });
  await waitFor('sshd', () => answers(port));
  return {
    target: `${userInfo().username}@127.0.0.1`,
    port,
    variables: { PATH: `${at('bin')}:${process.env.PATH ?? ''}`, HOME: dir },
    knownHostsPath: at('known_hosts'),
    knownHost,
    authorizedKeysPath: at('authorized_keys'),
    async stop() {
      server.kill('SIGTERM');
      await waitFor('the end of sshd', () => server.exitCode !== null || server.signalCode !== null);
    },
  };
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('data', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
