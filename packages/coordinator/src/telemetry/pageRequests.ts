/**
 * Asks nodes for their Prometheus pages over the streams that their agents have opened: agents listen on loopback only
 * and may be behind NAT, so these streams reach them without an open port.
 */
import { MusterError } from '@muster/common/errors';
import type { NodeName } from '@muster/common/ids';

/** The limit of the protocol. */
export const pageBytesMax = 4 * 1024 * 1024;
/** Below Prometheus' own timeout of 10 s, so that Prometheus receives the reason. */
const pageTimeoutMs = 5_000;

/** The stream to an agent. */
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
  /** At most one per node: a caller that asks meanwhile gets the same page. */
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
   * @param timeoutMs of the first caller
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

/** Of one page: a node of 16 GPUs in 7 parts each has some 6,000. */
export const pageSamplesMax = 20_000;
/** Of one sample. */
export const pageLabelsMax = 32;
/** Of the name of a series or of a label, in characters. */
export const pageNameMax = 128;
/** Of the value of a label as it is written: an agent writes 256 characters, of which each may take a backslash. */
export const pageLabelValueMax = 512;
/** Of one line: as many labels as are taken, in names and values of an ordinary length. */
const lineCharactersMax = 8 * 1024;

/**
 * Series of the coordinator's own page: the same series of a node would be counted in sums over all targets. Those that
 * agents send begin with `DCGM_FI_`, `muster_agent_`, `muster_host_`, `muster_gpu_` or `process_`.
 */
const ofCoordinator =
  /^(?:muster_(?!agent_|host_|gpu_)|(?:muster_gpu_seconds_total|learning_rate|gpu_utilization|cost_usd)$|training_|checkpoint_|nodejs_)/;

const about = /^# (?:HELP|TYPE) ([a-zA-Z_:][\w:]*) /;
const seriesName = /[a-zA-Z_:][\w:]*/y;
const label = /([a-zA-Z_]\w*)="((?:[^"\\]|\\[\\"n])*)"([,}])/y;
const valueAndTime = / (?:[-+]?(?:\d[-+.\deE]{0,30}|\.\d[-+\deE]{0,30}|Inf)|NaN)(?: -?\d{1,19})?$/y;

/**
 * @returns what is wrong with it, with the number of the line; null: it may be forwarded. Nothing of its text is
 *   repeated, because the sender chose it.
 */
export function problemOfPage(text: string): string | null {
  let samples = 0;
  let number = 0;
  for (let from = 0; from < text.length; ) {
    number += 1;
    const end = text.indexOf('\n', from);
    if (end === -1) return `its last line, ${number}, has no end`;
    if (end - from > lineCharactersMax) return `line ${number} has more than ${lineCharactersMax} characters`;
    const line = text.slice(from, end);
    from = end + 1;
    if (line === '') continue;
    const isSample = !line.startsWith('#');
    const problem = isSample ? problemOfSample(line) : problemOfComment(line);
    if (problem !== null) return `line ${number} ${problem}`;
    if (isSample) samples += 1;
    if (samples > pageSamplesMax) return `it has more than ${pageSamplesMax} samples`;
  }
  return null;
}

const noLine = 'is not a line of the Prometheus text format';

function problemOfComment(line: string): string | null {
  const found = about.exec(line);
  return found === null ? noLine : problemOfName(found[1] ?? '');
}

function problemOfSample(line: string): string | null {
  seriesName.lastIndex = 0;
  const name = seriesName.exec(line)?.[0];
  if (name === undefined) return noLine;
  let at = name.length;
  if (line[at] === '{') {
    at += 1;
    for (let count = 1, isLast = line[at] === '}'; !isLast; count += 1) {
      if (count > pageLabelsMax) return `has more than ${pageLabelsMax} labels`;
      label.lastIndex = at;
      const found = label.exec(line);
      if (found === null) return noLine;
      const [whole, key = '', value = '', mark] = found;
      if (key.length > pageNameMax) return `has a label name of more than ${pageNameMax} characters`;
      if (value.length > pageLabelValueMax)
        return `has a label value of more than ${pageLabelValueMax} characters`;
      isLast = mark === '}';
      at += whole.length - Number(isLast);
    }
    at += 1;
  }
  valueAndTime.lastIndex = at;
  return valueAndTime.test(line) ? problemOfName(name) : noLine;
}

function problemOfName(name: string): string | null {
  if (name.length > pageNameMax) return `names a series with more than ${pageNameMax} characters`;
  return ofCoordinator.test(name) ? "names a series that is the coordinator's own" : null;
}
