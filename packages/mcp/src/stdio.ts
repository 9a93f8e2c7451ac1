/** The tools over standard input and output, for a client that starts a program. */
import { once } from 'node:events';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { type ToolServerParts, toolServer } from './server.ts';

export interface StdioOptions extends Omit<ToolServerParts, 'verbs'> {
  /** Asked once for each connection. */
  readonly verbs: () => Promise<ToolServerParts['verbs']>;
  readonly onProblem: (message: string) => void;
  /** Ends the server. */
  readonly abort: AbortSignal;
}

/** Far beyond any call: arguments of a submit are bounded by the coordinator at a quarter of that. */
const messageBytesMax = 4 * 1024 * 1024;

/** Serves until the client closes standard input, or until `abort` fires. */
export async function serveToolsOverStdio(options: StdioOptions): Promise<void> {
  const { verbs, onProblem, abort, ...parts } = options;
  const transport = new StdioServerTransport(process.stdin, process.stdout, {
    maxBufferSize: messageBytesMax,
  });
  const handle = serveStdio(async () => toolServer({ ...parts, verbs: await verbs() }), {
    transport,
    onerror: ({ message }) => onProblem(message),
  });
  await Promise.race([
    once(process.stdin, 'end'),
    once(process.stdin, 'close'),
    once(process.stdin, 'error'),
    new Promise((resolve) => abort.addEventListener('abort', resolve, { once: true })),
  ]);
  await handle.close();
}
