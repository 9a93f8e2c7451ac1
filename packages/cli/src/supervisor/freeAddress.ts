import { createServer } from 'node:net';

/**
 * An address that a process started next can listen on.
 * @param wanted `host:port`, taken when it is free
 * @returns `wanted`, or its host with a free port
 */
export async function freeAddress(wanted: string): Promise<string> {
  const host = wanted.slice(0, wanted.lastIndexOf(':')).replace(/^\[(.*)\]$/, '$1');
  const port = Number(wanted.slice(wanted.lastIndexOf(':') + 1));
  const found = (await listenOnce(host, port)) ?? (await listenOnce(host, 0));
  // Without any free port the process itself says so best.
  return found === null ? wanted : `${host.includes(':') ? `[${host}]` : host}:${found}`;
}

/** @returns the port; null when it cannot be had */
function listenOnce(host: string, port: number): Promise<number | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(null));
    server.listen({ host, port }, () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' ? (address?.port ?? null) : null));
    });
  });
}

/**
 * Where a daemon shows its page for Prometheus when nobody has said where: nobody's cluster may fail to start because of
 * a page that was not even asked for.
 * @param usual taken when it is free, unless `anyPort`
 * @param say hears when it is another one
 */
export async function addressOfPage(
  usual: string,
  { anyPort, whose, say }: { readonly anyPort: boolean; readonly whose: string; say(sentence: string): void },
): Promise<string> {
  if (anyPort) return freeAddress(usual.replace(/:\d+$/, ':0'));
  const found = await freeAddress(usual);
  if (found !== usual) say(`${usual} is in use; the metrics of ${whose} are at ${found}`);
  return found;
}
