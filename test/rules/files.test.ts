import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import {
  expectNone,
  isGenerated,
  lineOf,
  matchesInCode,
  repositoryFiles,
  root,
  type SourceFile,
} from './source.ts';

const files = repositoryFiles().filter(({ path }) => !isGenerated(path));
const productCode = files.filter(({ path }) => /^packages\/\w+\/src\//.test(path));
const tests = files.filter(({ path }) => path.endsWith('.test.ts'));

// ---- Size

const linesMax = 400;
const columnsMax = 160;

/** file => why it is longer than the others may be. */
const mayBeLong: Readonly<Record<string, string>> = {
  'packages/agent/src/drivers/conformance.ts':
    'one suite: what every driver promises, in the order of a task',
  'packages/common/src/eventKinds.ts': 'one table: every kind of event',
  'packages/common/src/spec/parse.test.ts': 'one table: every way a spec can be wrong, with the answer to it',
};

function longFiles(sources: readonly SourceFile[], allowed: Readonly<Record<string, string>>): string[] {
  const long = sources.filter(({ text }) => lineCount(text) > linesMax);
  const stale = Object.keys(allowed).filter((path) => !long.some((file) => file.path === path));
  return [
    ...long
      .filter(({ path }) => !(path in allowed))
      .map(({ path, text }) => `${path}: ${lineCount(text)} lines`),
    ...stale.map((path) => `${path}: is short again; take its entry out`),
  ];
}

function lineCount(text: string): number {
  return text.split('\n').length - 1;
}

function longLines({ path, text }: SourceFile): string[] {
  return text.split('\n').flatMap((line, index) => {
    // A table row or a link cannot be broken.
    const unbreakable = path.endsWith('.md') && (line.startsWith('|') || /\]\(|https?:/.test(line));
    return line.length <= columnsMax || unbreakable
      ? []
      : [`${path}:${index + 1}: ${line.length} characters`];
  });
}

test('the checkers see long files and long lines', () => {
  const long = { path: 'packages/agent/src/a.ts', text: 'x\n'.repeat(linesMax + 1) };
  expect(longFiles([long], {})).toEqual(['packages/agent/src/a.ts: 401 lines']);
  expect(longFiles([long], { [long.path]: 'one table' })).toEqual([]);
  expect(longFiles([], { [long.path]: 'one table' })).toEqual([
    `${long.path}: is short again; take its entry out`,
  ]);
  expect(longLines({ path: 'a.ts', text: `ok\n${'x'.repeat(columnsMax + 1)}` })).toEqual([
    'a.ts:2: 161 characters',
  ]);
  expect(longLines({ path: 'a.md', text: `| ${'x'.repeat(columnsMax)} |` })).toEqual([]);
});

test('files have a size that one can hold in mind', () => {
  const why = `A file over ${linesMax} lines holds more than one idea: split it where a reader would. If it is one table or
one state machine that must stand together, say so in mayBeLong of test/rules/files.test.ts.`;
  expectNone(longFiles(productCode, mayBeLong), why);
});

test('lines fit on a screen', () => {
  const breakable = files.filter(({ path }) => path !== 'LICENSE');
  expectNone(
    breakable.flatMap(longLines),
    `Nobody reads past column ${columnsMax}, in an editor or in a review.`,
  );
});

// ---- Promises and holes

/** Written in halves, or this file would break its own rule. */
const unfinished = new RegExp(
  `\\b(${['TO DO', 'FIX ME', 'XX X', 'HA CK'].join('|').replaceAll(' ', '')})\\b`,
  'g',
);
const switchedOff =
  /\b(?:test|it|describe|suite)\.(?:skip|only|todo|skipIf|runIf|fails)\b|\b(?:xit|xtest|xdescribe|fit|fdescribe)\(|\bskip\(\)/g;

/** file => what of the machine decides whether some of its tests can run. */
const captures =
  'captures of real drivers lie beside some checkouts only; what they show is tested with own fixtures too';
const mayDependOnMachine: Readonly<Record<string, string>> = {
  'packages/agent/src/gpus/dcgm/captures.test.ts': captures,
  'packages/agent/src/gpus/nvidiaSmi/csv.test.ts': captures,
  'packages/agent/src/gpus/nvidiaSmi/errors.test.ts': captures,
  'packages/agent/src/gpus/nvidiaSmi/list.test.ts': captures,
  'packages/agent/src/gpus/nvidiaSmi/topo.test.ts': captures,
  'packages/agent/src/gpus/nvidiaSmi/xml.test.ts': captures,
  'packages/agent/src/metrics/captures.test.ts': captures,
  'packages/diagnosis/src/diagnoseFixtures.test.ts': captures,
  'packages/diagnosis/src/progress/sampleLogs.test.ts': captures,
  'packages/agent/src/drivers/process/fences.test.ts':
    'a kernel offers version 1 or 2 of control groups, not both',
  'packages/agent/src/drivers/process/hungGuard.test.ts':
    'a kernel offers version 1 or 2 of control groups, not both',
  'packages/agent/src/drivers/process/limits.test.ts':
    'a kernel offers the controllers in version 1 or in version 2',
  'packages/agent/src/drivers/process/limitsCgroup2.test.ts':
    'a kernel offers the controllers in version 1 or in version 2',
  'packages/agent/src/drivers/process/tasks.test.ts':
    'only version 1 of control groups can make a process unkillable',
  'packages/agent/src/drivers/process/accounts.test.ts': 'only root can start a process as another user',
  'test/e2e/sweeps.test.ts':
    'agents without a service manager limit memory by version 1 of control groups alone',
  'packages/agent/src/artifacts/transfer.test.ts': 'only root can give files to another user',
  'test/e2e/hostileJob.test.ts': 'only root can start a process as another user',
  'packages/coordinator/src/store/sqlite/ownership.test.ts': 'only root can give files to another user',
};

function matchesInText({ path, text }: SourceFile, pattern: RegExp): string[] {
  return [...text.matchAll(pattern)].map((match) => `${path}:${lineOf(text, match.index)}: ${match[0]}`);
}

test('the checkers see unfinished work and tests that are switched off', () => {
  const mark = ['TO', 'DO'].join('');
  expect(matchesInText({ path: 'a.ts', text: `x;\n// ${mark} later` }, unfinished)).toEqual([
    `a.ts:2: ${mark}`,
  ]);
  const text =
    "test.skip('a');\n// test.only is for debugging\nit.only('b');\ndescribe.skipIf(x)('c');\nskip();";
  expect(matchesInCode({ path: 'a.test.ts', text }, switchedOff)).toEqual([
    'a.test.ts:1: test.skip',
    'a.test.ts:3: it.only',
    'a.test.ts:4: describe.skipIf',
    'a.test.ts:5: skip()',
  ]);
});

test('nothing is left unfinished in the code', () => {
  const problems = files.flatMap((file) => matchesInText(file, unfinished));
  expectNone(
    problems,
    'Finish it, or write it down where work is tracked; a mark in the code is found by nobody.',
  );
});

test('every test runs', () => {
  const unlisted = tests.filter(({ path }) => !(path in mayDependOnMachine));
  const why = `A test that does not run protects nothing. Mend it or delete it; \`npm test\` brings what tests need. What no
command can bring, such as another kernel, goes into mayDependOnMachine of test/rules/files.test.ts.`;
  expectNone(
    unlisted.flatMap((file) => matchesInCode(file, switchedOff)),
    why,
  );
});

/** They run beside every file of a project, or in a process that has only one. */
const hooksOfProjects = /^test\/(?:examples|support\/(?:cluster|eachFile|sharedProcess|hosts\/openCluster))/;
const hookOfModule = /^(?:before|after)(?:All|Each)\(/gm;

test('fixtures register their hooks when a test file calls them', () => {
  const fixtures = files.filter(({ path }) => !path.endsWith('.test.ts') && !hooksOfProjects.test(path));
  expectNone(
    fixtures.flatMap((file) => matchesInCode(file, hookOfModule)),
    'Unit tests share processes, so a module is loaded once: its hooks would belong to the first file that imports it.',
  );
});

// ---- One machine's paths

/** The checkout's own folder, and home folders anywhere. */
function machinePaths(checkout: string): RegExp {
  const escaped = `${checkout.replace(/\/$/, '')}/`.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(
    String.raw`${escaped}|(?<![\w.~-])/(?:home|Users)/\w[\w.-]*|(?<![\w.~-])/roo[t]/|\b[A-Z]:\\Users\\`,
    'g',
  );
}

test('the checker sees paths of one machine', () => {
  const text = [
    '/ho',
    'me/ann/muster and ',
    '/ro',
    'ot/.cache and /srv/checkout/packages but not http://x/home/ or ~/work',
  ].join('');
  expect(
    matchesInText({ path: 'a.md', text }, machinePaths('/srv/checkout')).map((found) => found.slice(8)),
  ).toEqual([['/ho', 'me/ann'].join(''), ['/ro', 'ot/'].join(''), '/srv/checkout/']);
});

test('no path of one machine is committed', () => {
  const pattern = machinePaths(dirname(`${root}x`));
  const problems = files.flatMap((file) => matchesInText(file, pattern));
  expectNone(
    problems,
    'Such a path exists on one machine only. Use a relative path, the temporary folder or a placeholder.',
  );
});

// ---- Package registries

/** Hosts that packages of npm, Debian, Python and Rust come from; written in parts, or this file would name them. */
const packageRegistries = new RegExp(
  [
    ['npm', 'js.org'],
    ['npm', 'js.com'],
    ['yarn', 'pkg.com'],
    ['deb.', 'debian.org'],
    ['archive.', 'ubuntu.com'],
    ['py', 'pi.org'],
    ['python', 'hosted.org'],
    ['crates', '.io'],
  ]
    .map((parts) => parts.join('').replaceAll('.', String.raw`\.`))
    .join('|'),
  'g',
);

test('the checker sees hosts of package registries', () => {
  const text = `fetch https://registry.${['npm', 'js.org'].join('')}/x\nfrom https://example.org`;
  expect(matchesInText({ path: 'a.md', text }, packageRegistries)).toEqual([
    `a.md:1: ${['npm', 'js.org'].join('')}`,
  ]);
});

test('no file names the host of a package registry', () => {
  const problems = repositoryFiles().flatMap((file) => matchesInText(file, packageRegistries));
  expectNone(
    problems,
    'Each machine gets its packages from the registry that it is set up for; a name in a file would send it elsewhere.',
  );
});
