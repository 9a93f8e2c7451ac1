/** The tools over streamable HTTP, for a server that knows who calls. */
import { type AuthInfo, createMcpHandler, type McpHttpHandler } from '@modelcontextprotocol/server';
import { type ToolServerParts, toolServer } from './server.ts';

export type ToolHandler = (request: Request, parts: ToolServerParts) => Promise<Response>;

/** Streams of clients that wait for changes, of which there are none: tools stay as they are. */
const subscriptionsMax = 64;

/**
 * Each request is answered by a server of its own, with the API of its caller: nothing is kept between requests, so that no session can
 * be taken over.
 */
export function openToolHandler(bodyBytesMax: number): {
  readonly handle: ToolHandler;
  close(): Promise<void>;
} {
  const handler: McpHttpHandler = createMcpHandler(({ authInfo }) => toolServer(partsIn(authInfo)), {
    legacy: 'stateless',
    maxRequestBodySize: bodyBytesMax,
    maxSubscriptions: subscriptionsMax,
  });
  return {
    handle: (request, parts) => {
      const authInfo: AuthInfo = { token: '', clientId: 'muster', scopes: [], extra: { parts } };
      return handler.fetch(request, { authInfo });
    },
    close: () => handler.close(),
  };
}

function partsIn(authInfo: AuthInfo | undefined): ToolServerParts {
  const parts = authInfo?.extra?.['parts'];
  if (parts === undefined) throw new Error('the request has no caller');
  return parts as ToolServerParts;
}
