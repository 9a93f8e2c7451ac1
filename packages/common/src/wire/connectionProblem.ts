/** Why no connection to a coordinator can be made, with the remedy. */
import { parseAddress } from '../address.ts';
import { MusterError } from '../errors.ts';

/**
 * @param address `host:port` that was dialled
 * @param reason the message of the error that ended the attempt, which gRPC may have wrapped in others
 * @param encrypted by TLS
 * @returns null for a reason that needs no words of ours
 */
export function connectionProblem(address: string, reason: string, encrypted: boolean): MusterError | null {
  if (/ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT/.test(reason)) {
    return new MusterError('unavailable', `no coordinator answers at ${address}`);
  }
  if (!encrypted) {
    // A server that expects TLS and receives something else closes the connection without an answer, as a dead tunnel does.
    if (!/Failed to connect/.test(reason)) return null;
    return new MusterError(
      'unavailable',
      `the server at ${address} closes every connection at once: a coordinator with TLS, whose CA is required ` +
        '(--ca or MUSTER_CA), or a tunnel whose other end is down',
    );
  }
  const found = tlsProblems.find(({ pattern }) => pattern.test(reason));
  return found === undefined ? null : new MusterError('permission_denied', found.message(address, reason));
}

interface TlsProblem {
  /** What Node and OpenSSL call it. */
  readonly pattern: RegExp;
  readonly message: (address: string, reason: string) => string;
}

const tlsProblems: readonly TlsProblem[] = [
  {
    pattern: /self-signed certificate|unable to verify|unable to get (?:local )?issuer/i,
    message: (address) =>
      `the server at ${address} is not the coordinator whose CA is trusted here: its certificate comes from another CA. ` +
      'If the coordinator has made a new one, copy its tls/ca.pem again; if not, a man in the middle is possible',
  },
  {
    pattern: /certificate has expired/i,
    message: (address) =>
      `the certificate of the coordinator at ${address} has expired: compare the clocks of both machines; ` +
      'if they agree, restart the coordinator, which creates a new one',
  },
  {
    pattern: /certificate is not yet valid/i,
    message: (address) =>
      `the certificate of the coordinator at ${address} is not valid yet: compare the clocks of both machines`,
  },
  {
    pattern: /does not match certificate's altnames/i,
    message: (address, reason) => {
      const host = parseAddress(address)?.host;
      const listed = /is not in the cert's (?:altnames|list): (.*?)(?:\. Resolution note|$)/s.exec(
        reason,
      )?.[1];
      const names = (listed ?? 'none').replaceAll(/DNS:|IP Address:/g, '');
      return (
        `the certificate of the coordinator at ${address} does not name ${host}: start the coordinator with ` +
        `--advertise ${host}, or use a name of the certificate: ${names}`
      );
    },
  },
  {
    pattern: /protocol version|unsupported protocol/i,
    message: (address) => `the server at ${address} has no TLS 1.3, so it is not a coordinator`,
  },
  {
    pattern: /wrong version number|packet length too long|ERR_SSL/i,
    message: (address) =>
      `the server at ${address} does not speak TLS: it is not a coordinator, or one that listens on loopback only, ` +
      'without TLS; for that one omit --ca and MUSTER_CA',
  },
];
