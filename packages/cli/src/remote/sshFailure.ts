/** What OpenSSH's client says when there is no connection, as a sentence and a remedy. Pure. */
import { CliError } from '../errors.ts';
import type { SshTarget } from './sshTarget.ts';

interface Reading {
  readonly pattern: RegExp;
  readonly sentence: (target: SshTarget, found: RegExpExecArray) => string;
  readonly hints: (target: SshTarget) => readonly string[];
  readonly code: 'permission_denied' | 'unavailable';
}

/** The first that matches counts: a changed key is also a failed verification. */
const readings: readonly Reading[] = [
  {
    pattern: /REMOTE HOST IDENTIFICATION HAS CHANGED/,
    sentence: ({ host }) => `${host} shows another host key than the one that is known for it here`,
    hints: ({ text, host }) => [
      `If the machine was reinstalled, forget the old key, then compare the new one: ssh-keygen -R ${host}; ssh ${text}`,
    ],
    code: 'permission_denied',
  },
  {
    pattern: /Host key verification failed|host key is known for/,
    sentence: ({ host }) => `the host key of ${host} is not known here`,
    hints: ({ text }) => [`Compare and confirm it once: ssh ${text}`],
    code: 'permission_denied',
  },
  {
    pattern: /Permission denied \(([^)]*)\)|Too many authentication failures/,
    sentence: ({ text }) => `${text} accepts none of the keys that ssh offers`,
    hints: ({ text }) => [
      `Install your key there: ssh-copy-id ${text}. A key with a passphrase has to be in ssh-agent: ssh-add`,
    ],
    code: 'permission_denied',
  },
  {
    pattern: /stdio forwarding failed/,
    sentence: ({ host }) => `the jump host on the way to ${host} does not reach it`,
    hints: ({ text }) => [
      `The jump host looks up the name itself: check HostName and ProxyJump in ~/.ssh/config: ssh -v ${text}`,
    ],
    code: 'unavailable',
  },
  {
    pattern: /Could not resolve hostname/,
    sentence: ({ host }) => `no address is known for ${host}`,
    hints: ({ text }) => [`Check the name, or add it to ~/.ssh/config: ssh ${text}`],
    code: 'unavailable',
  },
  {
    pattern: /Connection refused/,
    sentence: ({ host }) => `${host} accepts no ssh connections`,
    hints: ({ text }) => [`Check that sshd runs there, and its port: ssh -v ${text}`],
    code: 'unavailable',
  },
  {
    pattern: /No route to host|Network is unreachable|Connection timed out|Operation timed out/,
    sentence: ({ host }) => `${host} does not answer`,
    hints: ({ text }) => [`Check that the machine runs, and the way to it: ssh -v ${text}`],
    code: 'unavailable',
  },
];

/** @param said what `ssh` wrote to its standard error before it ended with 255 */
export function sshFailure(target: SshTarget, stderr: string): CliError {
  for (const { pattern, sentence, hints, code } of readings) {
    const found = pattern.exec(stderr);
    if (found !== null) return new CliError(sentence(target, found), { code, hints: hints(target) });
  }
  const last = stderr.trim().split('\n').at(-1)?.trim() ?? '';
  return new CliError(`the connection to ${target.host} broke${last === '' ? '' : `: ${last}`}`, {
    code: 'unavailable',
    hints: [`See why: ssh -v ${target.text} true`],
  });
}
