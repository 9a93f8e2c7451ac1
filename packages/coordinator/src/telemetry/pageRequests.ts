/**
 * Asks nodes for their Prometheus pages over the streams that their agents have opened: agents listen on loopback only
 * and may be behind NAT, so this is the one way to them that needs no open port.
 */
import { MusterError } from '@muster/common/errors';
import type { NodeName } from '@muster/common/ids';
import { problemOfPage } from './nodePage.ts';

/** As the protocol says. */
export const pageBytesMax = 4 * 1024 * 1024;
/** Below Prometheus' own timeout of 10 s, so that it hears why. */
const pageTimeoutMs = 5_000;

/** The way to an agent. */
export interface PageStream {
  ask(pageId: number): void;
}

interface Pending {
  readonly pageId: number;
  readonly promise: Promise<string>;
  /** What becomes of it. From then on the next to ask gets a page of their own. */
  readonly settle: (outcome: { readonly text: string } | { readonly error: MusterError }) => void;
}

export class PageRequests {
  private readonly streams = new Map<NodeName, PageStream>();
  /** At most one per node: whoever asks meanwhile gets the same page. */
  private readonly pending = new Map<NodeName, Pending>();
  private lastPageId = 0;

  get connected(): number {
    return this.streams.size;
  }

  /** The newest stream of a node is the one to use: an older one may be dead without us knowing yet. */
  add(node: NodeName, stream: PageStream): void {
    this.streams.set(node, stream);
    const pending = this.pending.get(node);
    if (pending !== undefined) stream.ask(pending.pageId);
  }

  remove(node: NodeName, stream: PageStream): void {
    if (this.streams.get(node) !== stream) return;
    this.streams.delete(node);
    const error = new MusterError('unavailable', `the agent of ${node} disconnected before it answered`);
    this.pending.get(node)?.settle({ error });
  }

  isCurrent(node: NodeName, stream: PageStream): boolean {
    return this.streams.get(node) === stream;
  }

  /**
   * The page of a node as it is now.
   * @param timeoutMs of whoever is first to ask
   * @throws {MusterError} `unavailable` when its agent is not connected, `deadline_exceeded` when it does not answer in time,
   *   `resource_exhausted` and `invalid` when its answer is not handed on
   */
  requestPage(node: NodeName, timeoutMs: number = pageTimeoutMs): Promise<string> {
    const underway = this.pending.get(node);
    if (underway !== undefined) return underway.promise;
    const stream = this.streams.get(node);
    if (stream === undefined) {
      const message = `the agent of ${node} is not connected, so its metrics are not available; see \`muster node ${node}\``;
      return Promise.reject(new MusterError('unavailable', message));
    }
    this.lastPageId += 1;
    const pageId = this.lastPageId;
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const settle: Pending['settle'] = (outcome) => {
      clearTimeout(timer);
      this.pending.delete(node);
      if ('error' in outcome) reject(outcome.error);
      else resolve(outcome.text);
    };
    const timer = setTimeout(() => {
      const message = `the agent of ${node} did not send its metrics within ${timeoutMs} ms; see \`muster node ${node}\``;
      settle({ error: new MusterError('deadline_exceeded', message) });
    }, timeoutMs);
    this.pending.set(node, { pageId, promise, settle });
    stream.ask(pageId);
    return promise;
  }

  /** @returns false when nobody asked for this page */
  answer(node: NodeName, stream: PageStream, pageId: number, text: string): boolean {
    const pending = this.pending.get(node);
    if (!this.isCurrent(node, stream) || pending?.pageId !== pageId) return false;
    const error = errorOfPage(node, text);
    pending.settle(error === null ? { text } : { error });
    return true;
  }
}

function errorOfPage(node: NodeName, text: string): MusterError | null {
  if (Buffer.byteLength(text) > pageBytesMax)
    return new MusterError(
      'resource_exhausted',
      `the metrics of ${node} have more than ${pageBytesMax} bytes`,
    );
  const problem = problemOfPage(text);
  if (problem === null) return null;
  const message = `the metrics of ${node} are not forwarded: ${problem}; check which program runs there as its agent`;
  return new MusterError('invalid', message);
}
