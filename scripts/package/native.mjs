// The native parts of a release: Node, and the library of koffi. npm installs those of this machine; those of another kind are fetched.
import { createHash } from 'node:crypto';
import { mkdir, readFile, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { root } from '../setup.mjs';
import { Stop } from '../terminal.mjs';
import { run } from './run.mjs';

/** Names of npm packages. @param {'x64' | 'arm64'} arch */
export const nativePackages = (arch) => ({
  node: `node-linux-${arch}`,
  koffi: `@koromix/koffi-linux-${arch}`,
});

/**
 * @param {import('./tree.mjs').Release} release
 * @param {string} work an empty folder for what is fetched
 * @param {AbortSignal} interrupted
 * @returns {Promise<string>} the folder below which the packages lie
 * @throws {Stop} when what the registry sends is not what the lock file names
 */
export async function nativeParts({ arch }, work, interrupted) {
  if (arch === process.arch) return join(root, 'node_modules');
  const lock = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8'));
  for (const name of Object.values(nativePackages(arch))) {
    const { version, integrity } = lock.packages[`node_modules/${name}`];
    const sent = await run(
      'npm',
      ['pack', '--loglevel=error', `${name}@${version}`],
      { cwd: work },
      interrupted,
    );
    const tarball = join(work, sent.trim().split('\n').at(-1) ?? '');
    const sum = createHash('sha512')
      .update(await readFile(tarball))
      .digest('base64');
    if (integrity !== `sha512-${sum}`)
      throw new Stop(
        `The registry sent another ${name}@${version} than package-lock.json names. Nothing was made.`,
      );
    await run('tar', ['-xzf', tarball, '-C', work], {}, interrupted);
    await mkdir(dirname(join(work, name)), { recursive: true });
    await rename(join(work, 'package'), join(work, name));
  }
  return work;
}
