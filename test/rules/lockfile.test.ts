import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { expect, test } from 'vitest';
import { expectNone, root } from './source.ts';

function readJson(path: string): unknown {
  return JSON.parse(readFileSync(join(root, path), 'utf8'));
}

interface LockEntry {
  readonly resolved?: string;
  readonly integrity?: string;
  readonly link?: boolean;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

type LockPackages = Readonly<Record<string, LockEntry>>;

/** npm looks for `name` beside the package at `path` and then upwards, as Node does. */
function isLocked(packages: LockPackages, path: string, name: string): boolean {
  const steps = path.split('/node_modules/');
  const folders = steps.map((_, index) => `${steps.slice(0, index + 1).join('/node_modules/')}/`);
  return ['', ...folders].some((folder) => `${folder}node_modules/${name}` in packages);
}

function lockProblems(packages: LockPackages): string[] {
  return Object.entries(packages).flatMap(([path, entry]) => {
    const missing = Object.keys(entry.optionalDependencies ?? {}).filter(
      (name) => !isLocked(packages, path, name),
    );
    const host = entry.resolved?.startsWith('http') === true ? new URL(entry.resolved).host : null;
    return [
      ...missing.map((name) => `${path || 'package.json'}: ${name} has no entry`),
      ...(host === null ? [] : [`${path}: names ${host}`]),
      ...(path.includes('node_modules/') && entry.link !== true && entry.integrity === undefined
        ? [`${path}: has no integrity`]
        : []),
    ];
  });
}

test('the checker sees holes in a lock file', () => {
  const problems = lockProblems({
    '': { optionalDependencies: { here: '1', absent: '1' } },
    'node_modules/here': { integrity: 'sha512-x' },
    'node_modules/a': { optionalDependencies: { inner: '1', here: '1' }, integrity: 'sha512-x' },
    'node_modules/a/node_modules/inner': { resolved: 'https://npm.example.org/inner.tgz' },
    'node_modules/@muster/cli': { link: true, resolved: 'packages/cli' },
  });
  expect(problems).toEqual([
    'package.json: absent has no entry',
    'node_modules/a/node_modules/inner: names npm.example.org',
    'node_modules/a/node_modules/inner: has no integrity',
  ]);
});

/** What npm copies from a package.json of ours into the lock file; `npm ci` itself notices a difference in only some. */
const copiedFields = [
  'version',
  'bin',
  'engines',
  'dependencies',
  'devDependencies',
  'optionalDependencies',
] as const;

type Manifest = { readonly [field in (typeof copiedFields)[number]]?: unknown };

function manifestProblems(folder: string, manifest: Manifest, locked: Manifest): string[] {
  return copiedFields
    .filter((field) => !isDeepStrictEqual(manifest[field], locked[field]))
    .map((field) => `${folder || '.'}/package.json: ${field} differs`);
}

test('the checker sees a lock file that is behind', () => {
  const manifest = { version: '0.1.0', bin: { muster: 'bin/muster' }, dependencies: { a: '1.0.0' } };
  expect(manifestProblems('packages/cli', manifest, { ...manifest, dependencies: { a: '2.0.0' } })).toEqual([
    'packages/cli/package.json: dependencies differs',
  ]);
  expect(manifestProblems('', manifest, { version: '0.1.0', dependencies: { a: '1.0.0' } })).toEqual([
    './package.json: bin differs',
  ]);
});

test('the lock file says what the package.json files say', () => {
  const lock = readJson('package-lock.json') as { packages: Readonly<Record<string, Manifest>> };
  const folders = Object.keys(lock.packages).filter((path) => !path.includes('node_modules/'));
  const problems = folders.flatMap((folder) =>
    manifestProblems(folder, readJson(join(folder, 'package.json')) as Manifest, lock.packages[folder] ?? {}),
  );
  const why = `A fresh clone gets what the lock file says: without \`bin\` there, for one, npm links no \`muster\`.
\`npm install --package-lock-only\` under Node 24 corrects it.`;
  expectNone(problems, why);
});

test('the lock file is whole', () => {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: LockPackages;
  };
  const why = `\`npm ci\` must give everybody the same files: each optional platform package has an entry (npm drops those that
its registry lacks without a word, and the next \`npm ci\` fails) and each entry its checksum. None names a host: the
checksum says what the file is, and each machine has a registry of its own. \`omit-lockfile-registry-resolved\` does that.`;
  expectNone(lockProblems(lock.packages), why);
});

test('npm under Node 20 is not warned that it is too old, as the install brings Node 24', () => {
  const folders = ['', ...readdirSync(join(root, 'packages')).map((name) => `packages/${name}/`)];
  for (const folder of folders)
    expect(readJson(`${folder}package.json`)).toMatchObject({ engines: { node: '>=20' } });
  // Three packages from elsewhere want more; npm warns of each of them below this level.
  expect(readFileSync(join(root, '.npmrc'), 'utf8')).toMatch(/^loglevel=error$/m);
});
