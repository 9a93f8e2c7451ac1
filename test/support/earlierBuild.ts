/** `muster` as an earlier commit of this repository makes it, beside that of this checkout. */
import { execFile } from 'node:child_process';
import { mkdir, readdir, readlink, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { repositoryDir } from './command.ts';
import { tempDir } from './services.ts';

const run = promisify(execFile);

/**
 * Builds a commit with the packages that this checkout has installed.
 * @param commit its full id
 * @returns its `muster` program; null: this clone does not have the commit
 */
export async function earlierProgram(commit: string): Promise<string | null> {
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
  await run(process.execPath, ['scripts/build.mjs'], { cwd: top });
  return join(top, 'packages/cli/bin/muster');
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
