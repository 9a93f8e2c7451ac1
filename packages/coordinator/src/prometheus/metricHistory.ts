/**
 * Reads what memory no longer has from a Prometheus that scrapes this cluster. It is asked for one answer at a time, waited for some
 * seconds, and read up to a size; whatever it does, the caller gets what is in memory, and a sentence about what is missing.
 */
import { messageOf } from '@muster/common/errors';
import type { MetricSeries } from '@muster/common/telemetry';
import { type HistoryQuery, type HistorySeries, promQlOf, seriesOfHistory } from './promql.ts';

export interface HistoryRange {
  /** Wall clock. */
  readonly fromMs: number;
  readonly toMs: number;
  /** Whether series have the labels of their job. */
  readonly withJobs: boolean;
}

/** @returns a sentence where it could not be read */
export type ReadHistory = (
  question: HistoryQuery,
  range: HistoryRange,
) => Promise<readonly MetricSeries[] | string>;

type Post = (url: string, init: RequestInit & { readonly body: URLSearchParams }) => Promise<Response>;

const timeoutMs = 10_000;
const answerBytesMax = 32 * 1024 * 1024;
/** Of all callers together: further ones get the answer that it is busy. */
const atOnceMax = 8;
const shownMax = 200;

/** @param url `http://host:9090`, where `/api/v1` is below */
export function historyFrom(url: string, post: Post = fetch): ReadHistory {
  let under = 0;
  return async (question, { fromMs, toMs, withJobs }) => {
    const { stepMs } = question;
    if (under >= atOnceMax)
      return missing(url, `${atOnceMax} questions are being answered; ask again in a moment`);
    under += 1;
    try {
      const found = await rangeOf(post, url, {
        query: promQlOf(question),
        start: String(fromMs / 1_000),
        end: String(toMs / 1_000),
        step: String(stepMs / 1_000),
        timeout: `${timeoutMs / 1_000}s`,
      });
      return seriesOfHistory(found, { stepMs, withJobs });
    } catch (error) {
      return missing(url, reasonOf(error));
    } finally {
      under -= 1;
    }
  };
}

function missing(url: string, why: string): string {
  return `earlier values are missing: Prometheus at ${url}: ${why}`;
}

function reasonOf(error: unknown): string {
  if (error instanceof Error && error.name === 'TimeoutError')
    return `no answer within ${timeoutMs / 1_000} s`;
  // For a failed connection, only `cause` has the reason.
  const cause = error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message}` : '';
  return `${messageOf(error)}${cause}`.slice(0, shownMax);
}

async function rangeOf(
  post: Post,
  url: string,
  parameters: Readonly<Record<string, string>>,
): Promise<readonly HistorySeries[]> {
  const answer = await post(`${url.replace(/\/+$/, '')}/api/v1/query_range`, {
    method: 'POST',
    body: new URLSearchParams(parameters),
    redirect: 'error',
    signal: AbortSignal.timeout(timeoutMs),
  });
  const text = await textOf(answer);
  const parsed = parsedOf(text);
  if (!answer.ok || parsed.status !== 'success')
    throw new Error(`HTTP ${answer.status}${parsed.error === undefined ? '' : `: ${parsed.error}`}`);
  return seriesIn(parsed.data);
}

async function textOf(answer: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const piece of answer.body ?? []) {
    bytes += piece.length;
    if (bytes > answerBytesMax)
      throw new Error(
        `the answer is larger than ${answerBytesMax} bytes; ask for less time or a longer step`,
      );
    text += decoder.decode(piece, { stream: true });
  }
  return text + decoder.decode();
}

interface Parsed {
  readonly status?: unknown;
  readonly error?: string;
  readonly data?: unknown;
}

function parsedOf(text: string): Parsed {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null ? parsed : {};
  } catch {
    return {};
  }
}

/** What does not have the form of a series is omitted. */
function seriesIn(data: unknown): readonly HistorySeries[] {
  const result = (data as { readonly result?: unknown } | undefined)?.result;
  if (!Array.isArray(result)) throw new Error('the answer is not one of Prometheus');
  return result.flatMap((each: Partial<HistorySeries> | null) =>
    each !== null && typeof each.metric === 'object' && Array.isArray(each.values)
      ? [{ metric: each.metric, values: each.values.filter(isSample) }]
      : [],
  );
}

function isSample(sample: unknown): sample is readonly [number, string] {
  return Array.isArray(sample) && typeof sample[0] === 'number' && typeof sample[1] === 'string';
}
