import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { commandTable } from '../../packages/cli/src/commandTable.ts';
import { shortCommands, specChecks } from '../../scripts/bundle.mjs';
import { changedLines, problemsOf } from '../../scripts/commitMessage.mjs';
import { requireMachine } from '../../scripts/package/machines.mjs';
import { captureGroup } from '../../scripts/processes.mjs';
import { explainNpmFailure, isSameInstall } from '../../scripts/setup.mjs';
import { screenOf, svgOf, wrapped } from '../../scripts/svg.mjs';
import { explainMissing } from '../../scripts/testMachine.mjs';
import { countTests } from '../../scripts/testReport.mjs';
import { tempDir, waitFor } from '../support/services.ts';
import { importsOf, productFiles, repositoryFiles } from './source.ts';

test('an install is current when it holds what the lock file names, other platforms aside', () => {
  const wanted = {
    '': { version: '0.1.0' },
    'node_modules/a': { version: '1.0.0', integrity: 'sha512-a' },
    'node_modules/other-platform': { version: '1.0.0', integrity: 'sha512-b', optional: true },
    'node_modules/@muster/cli': { link: true },
  };
  const present = {
    'node_modules/a': { version: '1.0.0', integrity: 'sha512-a' },
    'node_modules/@muster/cli': { link: true },
  };
  expect(isSameInstall(wanted, present)).toBe(true);
  expect(isSameInstall({ ...wanted, 'node_modules/new': { version: '1.0.0' } }, present)).toBe(false);
  expect(
    isSameInstall({ ...wanted, 'node_modules/a': { version: '1.0.1', integrity: 'sha512-c' } }, present),
  ).toBe(false);
});

test('a build needs no package that `npm ci --omit=dev` leaves away', () => {
  const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    dependencies: Readonly<Record<string, string>>;
  };
  const texts = new Map(repositoryFiles().map(({ path, text }) => [path, text]));
  const seen = new Set<string>();
  const packages = new Set<string>();
  const read = (path: string) => {
    if (seen.has(path)) return;
    seen.add(path);
    for (const { specifier } of importsOf(texts.get(path) ?? '')) {
      if (specifier.startsWith('.')) read(join('scripts', specifier));
      else if (!specifier.startsWith('node:')) packages.add(specifier);
    }
  };
  read('scripts/build.mjs');
  expect([...seen]).toContain('scripts/preparedMessages.mjs');
  expect([...packages].toSorted()).toEqual(Object.keys(dependencies).toSorted());
});

test('a release for one kind of machine is refused with a native file for another', async () => {
  const tree = tempDir('machines').path;
  mkdirSync(join(tree, 'lib'));
  writeFileSync(join(tree, 'lib/short'), 'x');
  await expect(requireMachine(tree, 'x64')).rejects.toThrow('has no native file');
  copyFileSync(execFileSync('which', ['sh'], { encoding: 'utf8' }).trim(), join(tree, 'lib/sh'));
  const [own, other] = process.arch === 'x64' ? (['x64', 'arm64'] as const) : (['arm64', 'x64'] as const);
  expect(await requireMachine(tree, own)).toEqual(['lib/sh']);
  await expect(requireMachine(tree, other)).rejects.toThrow(
    `lib/sh is not for machines of the kind ${other}`,
  );
});

test('short commands are commands', () => {
  const names = commandTable.map(({ name }) => name);
  expect(shortCommands.filter((name) => !names.includes(name))).toEqual([]);
});

test('what commands load of the checks of job files is what the build keeps apart', () => {
  const loaded = productFiles()
    .filter(({ path }) => path.startsWith('packages/cli/'))
    .flatMap(({ text }) => [...text.matchAll(/import\('@muster\/common\/spec\/(\w+)'\)/g)])
    .map(([, name]) => name);
  expect(new Set(loaded)).toEqual(new Set(specChecks));
});

test('a registry that cannot be reached is distinguished from other failures of npm', () => {
  expect(explainNpmFailure('npm error code EAI_AGAIN')).toContain('npm cannot reach its registry');
  expect(explainNpmFailure('npm error Missing: a@1 from lock file')).not.toContain('registry');
});

test('what a machine lacks is listed with the command that brings it', () => {
  const text = explainMissing([
    { what: 'a Docker engine', packages: ['docker.io', 'iptables'], isMissing: async () => true },
    { what: 'nats-server', packages: ['nats-server'], isMissing: async () => true },
  ]);
  expect(text).toContain('  - a Docker engine\n  - nats-server\n');
  expect(text).toContain('--no-install-recommends docker.io iptables nats-server');
  expect(text).toContain('systemctl start docker');
});

test('a test file that could not run counts as failed', () => {
  const passed = { status: 'passed', assertionResults: [{ status: 'passed' }] };
  const broken = { status: 'failed', assertionResults: [] };
  const numbers = { numPassedTests: 1, numFailedTests: 0, numPendingTests: 2, numTodoTests: 1 };
  expect(countTests({ ...numbers, testResults: [passed] }, 0)).toEqual({ passed: 1, failed: 0, skipped: 3 });
  expect(countTests({ ...numbers, testResults: [passed, broken] }, 1)).toEqual({
    passed: 1,
    failed: 1,
    skipped: 3,
  });
  expect(countTests({ ...numbers, testResults: [passed] }, 1)).toEqual({ passed: 1, failed: 1, skipped: 3 });
});

test('the picture of a terminal shows what is left on the screen', () => {
  const printed = 'waiting 1 s\r\x1b[Kdone \x1b[32mok\x1b[39m\r\nabcdefghijkl\r\n';
  const screen = screenOf(printed);
  expect(screen).toEqual([
    [
      { text: 'done ', style: '' },
      { text: 'ok', style: 'green' },
    ],
    [{ text: 'abcdefghijkl', style: '' }],
  ]);
  expect(wrapped(screen[1] ?? [], 10).map(([span]) => span?.text)).toEqual(['abcdefghij', 'kl']);
  expect(wrapped([], 10)).toEqual([[]]);
  const svg = svgOf([[{ text: 'a < b', style: 'red' }]], 10);
  expect(svg).toContain('class="red">a &lt; b</text>');
});

test('a program that is interrupted is gone with all that it has started, before its end is reported', async () => {
  const abort = new AbortController();
  const pidFile = join(tempDir('interrupted').path, 'pid');
  const script = `sleep 987654 & echo $! > ${pidFile}; wait`;
  const plain = await captureGroup('sh', ['-c', 'echo done; exit 3'], {}, abort.signal);
  expect(plain).toEqual({ code: 3, output: 'done\n' });
  const ended = captureGroup('sh', ['-c', script], {}, abort.signal);
  const pid = await waitFor('it has started a program', () => Number(readFileSync(pidFile, 'utf8')));
  abort.abort();
  await ended;
  expect(() => process.kill(pid, 0)).toThrow('ESRCH');
});

test('the form of a commit message is checked, its thoughts are not', () => {
  const good = 'Read a changing directory again\n\nA checkpoint could be missing.\n# a comment of git\n';
  expect(problemsOf(good)).toEqual([]);
  expect(problemsOf("Merge branch 'a-branch' into main")).toEqual([]);
  expect(problemsOf(`A${'é'.repeat(71)}\n\nWhy.`)).toEqual([]);
  expect(problemsOf(`a${'b'.repeat(72)}.\nWhy.`)).toEqual([
    'The subject has 74 characters; at most 72 are shown in lists.',
    'The subject must begin with a capital letter.',
    'The subject must not end with a full stop.',
    'The line after the subject must be empty.',
    'The message must have a body that says why.',
  ]);
  expect(changedLines('3\t4\ta.ts\n-\t-\tgen/b.ts\n0\t1\tc.md\n')).toBe(8);
});
