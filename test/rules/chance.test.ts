import { expect, test } from 'vitest';
import { expectNone, matchesInCode, productFiles, type SourceFile } from './source.ts';

/** file or folder => why it may read the clock, draw random values or read the environment. */
const mayRead: Readonly<Record<string, string>> = {
  'packages/common/src/clock.ts': 'the one clock that main files hand on',
  'packages/coordinator/src/main.ts': 'wires real random bytes into tokens and ids',
  'packages/agent/src/main.ts': 'wires real chance and ids into reconnects and tasks',
  'packages/agent/src/observers.ts':
    'wires real chance and the search paths of the machine into what watches it',
  'packages/agent/src/session/credential.ts': 'makes the secret by which the coordinator knows this agent',
  'packages/agent/src/doctor/doctor.ts': 'looks at the machine with the PATH of whoever asks',
  'packages/cli/src/loginToken.ts': 'makes the token by which the coordinator knows this user',
  'packages/cli/src/starter.ts': 'finds the cache of this user before anything is loaded',
  'packages/cli/src/main.ts': 'wires the real clock, ids and environment into the commands',
};

const why = `Time, chance and environment are arguments. One forgotten clock read makes a run impossible to replay, one
forgotten environment variable is an option nobody documented. Take the value as a parameter; only main files and adapters
read it, and each has an entry with its reason in test/rules/chance.test.ts.`;

const reads =
  /\bDate\.now\b|\bnew Date\(\)|\bMath\.random\b|\brandomUUID\b|\brandomBytes\b|\bprocess\.env\b|\bprocess\.hrtime\b/g;

function unlistedReads(files: readonly SourceFile[], allowed: Readonly<Record<string, string>>): string[] {
  const readers = files.filter((file) => matchesInCode(file, reads).length > 0);
  const stale = Object.keys(allowed).filter((entry) => !readers.some(({ path }) => path.startsWith(entry)));
  return [
    ...readers
      .filter(({ path }) => !Object.keys(allowed).some((entry) => path.startsWith(entry)))
      .flatMap((file) => matchesInCode(file, reads)),
    ...stale.map((entry) => `${entry}: reads none of them any more; take its entry out`),
  ];
}

test('the checker sees unlisted reads and stale entries', () => {
  const files = [
    {
      path: 'packages/agent/src/a.ts',
      text: 'const t = Date.now();\n// Math.random()\nconst e = process.env.HOME;',
    },
    { path: 'packages/agent/src/main.ts', text: 'start(randomUUID());' },
  ];
  const allowed = { 'packages/agent/src/main.ts': 'wires', 'packages/agent/src/gone.ts': 'was an adapter' };
  expect(unlistedReads(files, allowed)).toEqual([
    'packages/agent/src/a.ts:1: Date.now',
    'packages/agent/src/a.ts:3: process.env',
    'packages/agent/src/gone.ts: reads none of them any more; take its entry out',
  ]);
});

test('clock, chance and environment are read only where they are wired', () => {
  expectNone(unlistedReads(productFiles(), mayRead), why);
});
