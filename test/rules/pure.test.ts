import { expect, test } from 'vitest';
import {
  expectNone,
  importsOf,
  matchesInCode,
  productFiles,
  resolveImport,
  type SourceFile,
} from './source.ts';

/** Where decisions are made. Their result depends on their arguments alone, so any of them can be replayed and tested. */
const pureRoots = [
  /^packages\/coordinator\/src\/scheduler\//,
  /^packages\/coordinator\/src\/lifecycle\//,
  /^packages\/coordinator\/src\/explain\//,
  /^packages\/advice\/src\/(?!file\/)/,
  /^packages\/experiments\/src\/(?!file\/)/,
  /^packages\/pipelines\/src\/(?!file\/|export\/)/,
  /^packages\/coordinator\/src\/sweeps\/sweepPlan\.ts$/,
  /^packages\/agent\/src\/tasks\/(?:step|state|report)\.ts$/,
];

/** Node's modules that do nothing but compute. */
const harmlessModules = new Set(['node:assert', 'node:assert/strict']);

const why = `Decisions are plain functions of their arguments: no I/O, no clock, no chance, no waiting. Whoever needs one of
these passes its value in (see docs/ARCHITECTURE.md). A helper that is imported here must keep to the same rule, or hold
its pure part in a file of its own.`;

const effects = new RegExp(
  [
    String.raw`\bDate\.now\b`,
    String.raw`\bnew Date\(\)`,
    String.raw`\bMath\.random\b`,
    String.raw`\brandomUUID\b`,
    String.raw`(?<![.\w$])(?:async|await)\b(?!\s*[,:?}=)])`,
    String.raw`(?<![.\w$])(?:Promise|setTimeout|setInterval|setImmediate|queueMicrotask|fetch|performance|globalThis)\b(?!\s*\??:)`,
    String.raw`(?<![.\w$])(?:process|console|crypto)\.`,
  ].join('|'),
  'g',
);

/** Follows value imports from the pure folders and reports everything on the way that is not pure. */
function impurities(files: readonly SourceFile[]): string[] {
  const byPath = new Map(files.map((file) => [file.path, file]));
  const queue = files.filter(({ path }) => pureRoots.some((pattern) => pattern.test(path)));
  const seen = new Set(queue);
  const problems: string[] = [];
  for (const file of queue) {
    problems.push(...matchesInCode(file, effects));
    for (const { specifier, line, typeOnly } of importsOf(file.text)) {
      if (typeOnly || harmlessModules.has(specifier)) continue;
      const target = resolveImport(file.path, specifier);
      const helper = target === null ? undefined : byPath.get(target);
      if (helper === undefined) problems.push(`${file.path}:${line}: imports ${specifier}`);
      else if (!seen.has(helper)) {
        seen.add(helper);
        queue.push(helper);
      }
    }
  }
  return problems;
}

test('the checker sees effects, and effects behind an import', () => {
  const scheduler = 'packages/coordinator/src/scheduler/plan.ts';
  const helper = 'packages/coordinator/src/queue.ts';
  const text = [
    "import { readFileSync } from 'node:fs';",
    "import type { Server } from '@grpc/grpc-js';",
    "import { take } from '../queue.ts';",
    "import { credentials } from '@grpc/grpc-js';",
    'export async function plan(now = Date.now()) { await take(Math.random()); }',
    'const fine = { process: 1, await: 2, driver: "process" }; // Date.now() is not called here',
    'const alsoFine = fine.process + new Date(now).getTime();',
  ].join('\n');
  const problems = impurities([
    { path: scheduler, text },
    { path: helper, text: 'export function take() { return process.hrtime(); }' },
    { path: 'packages/coordinator/src/loop.ts', text: 'setTimeout(() => Date.now());' },
  ]);
  expect(problems).toEqual([
    `${scheduler}:5: async`,
    `${scheduler}:5: Date.now`,
    `${scheduler}:5: await`,
    `${scheduler}:5: Math.random`,
    `${scheduler}:1: imports node:fs`,
    `${scheduler}:4: imports @grpc/grpc-js`,
    `${helper}:1: process.`,
  ]);
});

test('every pure root has files', () => {
  const paths = productFiles().map(({ path }) => path);
  expect(pureRoots.filter((root) => !paths.some((path) => root.test(path)))).toEqual([]);
});

test('scheduler, lifecycle, explain and the life of a task are pure', () => {
  expectNone(impurities(productFiles()), why);
});
