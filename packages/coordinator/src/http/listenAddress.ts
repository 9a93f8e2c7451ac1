/** Addresses that the HTTP side may serve on, and names that it may be called by. */
import { MusterError } from '@muster/common/errors';

export interface ListenAddress {
  /** As it was written: `127.0.0.1`, `localhost`, `[::1]`. */
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
}

/**
 * @param text `host:port`
 * @throws {MusterError} when it is none, or one that others on the network could reach
 */
export function parseListenAddress(text: string): ListenAddress {
  const match = /^(.+):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? '';
  const port = Number(match?.[2]);
  if (match === null || port > 65_535) {
    throw new MusterError(
      'invalid',
      `invalid address for --http "${text}"; expected HOST:PORT, such as 127.0.0.1:7071`,
    );
  }
  if (!isLoopbackHost(host)) {
    throw new MusterError(
      'invalid',
      `refusing to serve metrics on ${host}: everybody who reaches that address could read them. ` +
        'Use --http 127.0.0.1:7071 and let Prometheus reach it on this machine or through an SSH tunnel.',
    );
  }
  return { host, port };
}

/**
 * Was this server called by a name of this machine? A web page can make a browser here ask for any name that it has had
 * resolve to 127.0.0.1, and read the answer as its own; the name stays in the Host header.
 */
export function isOwnName(hostHeader: string | undefined): hostHeader is string {
  const host = /^(.+?)(?::\d{1,5})?$/.exec(hostHeader ?? '')?.[1] ?? '';
  return isLoopbackHost(host.toLowerCase());
}

function isLoopbackHost(host: string): boolean {
  return /^(127(\.\d{1,3}){3}|localhost|\[::1\])$/.test(host);
}
