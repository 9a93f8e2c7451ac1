import { expect, test } from 'vitest';
import { expectNone, matchesInCode, productFiles, type SourceFile } from './source.ts';

/** Names of moments, by the clock that they were read from. */
const clockOf: Readonly<Record<string, string>> = {
  wall: 'the wall clock',
  mono: 'the monotonic clock of the process',
  monotonic: 'the monotonic clock of the process',
  boottime: 'CLOCK_BOOTTIME',
};

const moment = String.raw`(?:[\w$]+(?:\(\))?\??\.)*[\w$]*?(wall|mono|monotonic|boottime)Ms\b(?:\(\))?`;
const difference = new RegExp(String.raw`${moment} (?:-|<|>|<=|>=) ${moment}`, 'gi');

/** file => why it may take the difference of two clocks. Each is an offset, by which one clock is converted into another. */
const mayMix: Readonly<Record<string, string>> = {
  'packages/coordinator/src/agents/taskStatusCache.ts':
    "converts moments of nodes into the coordinator's time",
  'packages/coordinator/src/clock/agentClocks.ts': 'finds when the boots of agents began',
  'packages/coordinator/src/clock/trustedClock.ts': 'finds how long the machine has slept',
  'packages/coordinator/src/metricStream/sampledValues.ts':
    'dates values that were sampled on the monotonic clock',
  'packages/coordinator/src/telemetry/clusterHistory.ts': 'dates samples of the monotonic clock',
  'packages/coordinator/src/telemetry/telemetryFile.ts': 'dates samples of the monotonic clock',
  'packages/coordinator/src/telemetry/telemetryStore.ts': 'dates samples of the monotonic clock',
};

/** file or folder of the coordinator => why it may read the wall clock of the machine, which anybody may set. */
const mayReadSystemWall: Readonly<Record<string, string>> = {
  'packages/coordinator/src/auth/gate.ts': 'refuses tokens of users by the later of both clocks',
  'packages/coordinator/src/clock/': 'decides how far the clock of the machine is believed',
  'packages/coordinator/src/main.ts': 'hands the clocks of the machine on',
  'packages/coordinator/src/metrics/leaseMetrics.ts': 'shows how far the clock of the machine is off',
  'packages/coordinator/src/store/sqlite/open.ts': 'measures how long a check of the file takes',
  'packages/coordinator/src/tls/serverTls.ts': 'makes certificates that are valid by both clocks',
};

function mixed(files: readonly SourceFile[]): readonly { readonly path: string; readonly what: string }[] {
  return files.flatMap((file) =>
    matchesInCode(file, difference).flatMap((what) => {
      const clocks = [...what.matchAll(new RegExp(moment, 'gi'))].map(
        ([, kind]) => clockOf[kind?.toLowerCase() ?? ''],
      );
      return new Set(clocks).size > 1 ? [{ path: file.path, what }] : [];
    }),
  );
}

const readsOf = (files: readonly SourceFile[]) =>
  files.flatMap((file) =>
    file.path.startsWith('packages/coordinator/src/')
      ? matchesInCode(file, /\b(?:systemWallMs|systemClock)\b/g).map((what) => ({ path: file.path, what }))
      : [],
  );

function unlisted(
  found: readonly { readonly path: string; readonly what: string }[],
  allowed: Readonly<Record<string, string>>,
): readonly string[] {
  const stale = Object.keys(allowed).filter((entry) => !found.some(({ path }) => path.startsWith(entry)));
  return [
    ...found
      .filter(({ path }) => !Object.keys(allowed).some((entry) => path.startsWith(entry)))
      .map(({ what }) => what),
    ...stale.map((entry) => `${entry}: does none of it any more; take its entry out`),
  ];
}

test('the checker sees differences of two clocks, and none of one', () => {
  const text = [
    'const a = clock.wallMs() - startedMonoMs;',
    'const b = monotonicMs() - this.startedMonoMs;',
    'if (sent.boottimeMs >= nowWallMs) go();',
    '// wallMs - monoMs',
    'const c = systemWallMs - trustedWallMs;',
  ].join('\n');
  expect(mixed([{ path: 'packages/agent/src/a.ts', text }]).map(({ what }) => what)).toEqual([
    'packages/agent/src/a.ts:1: clock.wallMs() - startedMonoMs',
    'packages/agent/src/a.ts:3: sent.boottimeMs >= nowWallMs',
  ]);
  expect(unlisted([], { 'packages/agent/src/a.ts': 'was an offset' })).toHaveLength(1);
});

test('moments of two clocks are neither subtracted nor compared', () => {
  expectNone(
    unlisted(mixed(productFiles()), mayMix),
    `The difference of two clocks is no time that passed: one of them may be set at any moment (G10). Read both moments from one
clock. An offset that converts one clock into the other has an entry with its reason in test/rules/moments.test.ts.`,
  );
});

test('the wall clock of the machine is read where its steps are judged', () => {
  expectNone(
    unlisted(readsOf(productFiles()), mayReadSystemWall),
    `Parts of the coordinator get the trusted time, on which the difference of two moments is time that passed. The wall clock of the
machine may be set at any moment; who must compare it has an entry with its reason in test/rules/moments.test.ts.`,
  );
});
