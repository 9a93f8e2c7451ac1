/** Logs of real programs with what a reader should find, where a checkout has them beside it. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { LogDiagnosis } from './diagnose.ts';

const folder = fileURLToPath(new URL('../../../../shared/fixtures/logs', import.meta.url));
const names = existsSync(folder)
  ? readdirSync(folder)
      .filter((name) => name.endsWith('.log'))
      .map((name) => name.slice(0, -'.log'.length))
  : [];

interface Expected {
  readonly state: string;
  readonly framework: string | null;
  readonly failure: {
    readonly category: string;
    readonly blame: string;
    readonly retry: string;
    readonly evidence: string;
    readonly evidence_line: number;
    readonly rank?: number;
  } | null;
}

describe.runIf(existsSync(folder))('captured logs', () => {
  test('there are some', () => expect(names).not.toEqual([]));

  test.each(names)('%s', (name) => {
    const log = new LogDiagnosis();
    log.feed(readFileSync(join(folder, `${name}.log`)));
    log.end();
    const expected: Expected = JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8'));
    const { state, framework, cause, blame, retry, evidence, advice } = log.result();
    const { failure } = expected;
    expect({ state, framework, cause, blame, retry, line: evidence?.line ?? null }).toEqual({
      state: expected.state,
      framework: expected.framework,
      cause: failure?.category ?? null,
      blame: failure?.blame ?? null,
      retry: failure?.retry ?? null,
      line: failure?.evidence_line ?? null,
    });
    if (failure === null) return;
    expect(evidence?.text).toContain(failure.evidence);
    if (failure.rank !== undefined) expect(evidence?.rank).toBe(failure.rank);
    expect(advice === null).toBe(failure.category === 'loss_spike');
  });
});
