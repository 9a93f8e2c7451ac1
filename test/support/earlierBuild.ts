/** `muster` as an earlier commit of this repository makes it, beside that of this checkout. */
import { execFile } from 'node:child_process';
import { mkdir, readdir, readlink, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { repositoryDir } from './command.ts';
import { tempDir } from './services.ts';

const run = promisify(execFile);

/** The last commit before clients told their version. The form of its store is one step older. */
const earlierCommit = '737bc147dce98654d503d684db4461789c45a866';
export const noEarlierCommit =
  'this clone does not have the earlier commit (a shallow clone: git fetch --unshallow)';

/** @returns its `muster` program; null: this clone does not have the commit */
export async function earlierProgram(): Promise<string | null> {
  const top = await earlierTree(earlierCommit);
  if (top === null) return null;
  await run(process.execPath, ['scripts/build.mjs'], { cwd: top });
  return join(top, 'packages/cli/bin/muster');
}

/**
 * Makes Debian's package of it, as version 0.0.9.
 * @returns its path; null: this clone does not have the commit
 */
export async function earlierDeb(): Promise<string | null> {
  const top = await earlierTree(earlierCommit);
  if (top === null) return null;
  const release = { version: '0.0.9', arch: process.arch, commit: earlierCommit, epochS: 1_600_000_000 };
  const packed = join(top, 'packed');
  const script = `import { makePackages } from './scripts/package.mjs';
    const making = { gzip: 1, xz: 0, interrupted: new AbortController().signal };
    console.log((await makePackages(${JSON.stringify(packed)}, ${JSON.stringify(release)}, making)).find((name) => name.endsWith('.deb')));`;
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', script], { cwd: top });
  return join(packed, stdout.trim());
}

/**
 * The files of a commit, with the packages that this checkout has installed.
 * @param commit its full id
 */
async function earlierTree(commit: string): Promise<string | null> {
  const git = (...args: readonly string[]) => run('git', ['-C', repositoryDir, ...args]);
  if (
    await git('cat-file', '-e', `${commit}^{commit}`).then(
      () => false,
      () => true,
    )
  )
    return null;
  const { path } = tempDir('earlier');
  const archive = join(path, 'source.tar');
  const top = join(path, 'muster');
  await mkdir(join(top, 'node_modules'), { recursive: true });
  await git('archive', '--output', archive, commit);
  await run('tar', ['-xf', archive, '-C', top]);
  await linkPackages(join(repositoryDir, 'node_modules'), join(top, 'node_modules'));
  return top;
}

/** Its own packages are those of its own tree: their links lead out of node_modules. */
async function linkPackages(from: string, to: string): Promise<void> {
  for (const name of await readdir(from)) {
    if (name !== '@muster') await symlink(join(from, name), join(to, name));
  }
  await mkdir(join(to, '@muster'));
  for (const name of await readdir(join(from, '@muster')))
    await symlink(await readlink(join(from, '@muster', name)), join(to, '@muster', name));
}
