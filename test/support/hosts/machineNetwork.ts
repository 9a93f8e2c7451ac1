/** A network for booted machines, and sshd on them. No packet leaves it. */
import type { BootedMachine } from './bootedMachine.ts';
import { mustRun } from './programs.ts';

/** argv of a program of this machine on the network of another. */
function onNetworkOf({ pid }: BootedMachine, argv: readonly string[]): readonly string[] {
  return ['nsenter', `--net=/proc/${pid}/ns/net`, '--', ...argv];
}

/** The port of the first machine that leads to this host, counted from 2, is `port2`, `port3` … */
export function runAtSwitch(first: BootedMachine, ...argv: readonly string[]): Promise<string> {
  return mustRun(onNetworkOf(first, argv));
}

/**
 * The first machine is 10.77.0.1 and the switch; the others are 10.77.0.2, 10.77.0.3 … in their order.
 */
export async function connectMachines(first: BootedMachine, others: readonly BootedMachine[]): Promise<void> {
  const ip = (...args: readonly string[]) => runAtSwitch(first, 'ip', ...args);
  await ip('link', 'add', 'bridge0', 'type', 'bridge');
  await ip('address', 'add', '10.77.0.1/24', 'dev', 'bridge0');
  await ip('link', 'set', 'bridge0', 'up');
  for (const [index, machine] of others.entries()) {
    const number = index + 2;
    const port = `port${number}`;
    await ip('link', 'add', port, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(machine.pid));
    await ip('link', 'set', port, 'master', 'bridge0', 'up');
    const there = (...args: readonly string[]) => mustRun(onNetworkOf(machine, ['ip', ...args]));
    await there('address', 'add', `10.77.0.${number}/24`, 'dev', 'eth0');
    await there('link', 'set', 'eth0', 'up');
  }
}

const unit = 'test-sshd';

/**
 * Starts sshd with a host key of its own.
 * @param publicKey which may log in, as root and as every other user
 * @returns its host key, as `known_hosts` has it behind the name
 */
export async function startSshdOn(machine: BootedMachine, publicKey: string): Promise<string> {
  const script = [
    'mkdir -p /run/sshd /etc/test-sshd; cd /etc/test-sshd',
    '[ -e host_key ] || ssh-keygen -q -t ed25519 -N "" -f host_key',
    'printf "%s\\n" "$1" > authorized_keys',
    'printf "%s\\n" "HostKey /etc/test-sshd/host_key" "AuthorizedKeysFile /etc/test-sshd/authorized_keys" ' +
      '"PasswordAuthentication no" "KbdInteractiveAuthentication no" "UsePAM no" "ClientAliveInterval 15" > config',
    `systemd-run --quiet --collect --unit ${unit} /usr/sbin/sshd -D -e -f /etc/test-sshd/config`,
    'cut -d " " -f 1,2 host_key.pub',
  ];
  return (await machine.must('sh', '-euc', script.join('\n'), 'sh', publicKey.trim())).trim();
}

/** With all of its connections, as if the machine had vanished from the network. */
export async function stopSshdOn(machine: BootedMachine): Promise<void> {
  await machine.must('systemctl', 'kill', '--signal=KILL', unit);
}
