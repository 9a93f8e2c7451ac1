/** Releases of this checkout as archives, and others made from one: newer ones, and some that do not start. */
import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { musterVersion } from '@muster/common/version';
import { makeTarball, tarballName } from '../../scripts/package/archives.mjs';
import { nativeParts } from '../../scripts/package/native.mjs';
import { filesBelow, sums } from '../../scripts/package/sums.mjs';
import { makeTree } from '../../scripts/package/tree.mjs';
import { tempDir } from './services.ts';

const run = promisify(execFile);
const interrupted = new AbortController().signal;

export interface ReleaseChange {
  readonly version: string;
  /** Statements that its programs begin with. */
  readonly prelude?: string;
  /** Added to the version of the schema that it says it has. */
  readonly schemaStep?: number;
}

/** The folder gets the archives. */
export class Releases {
  readonly folder: string;
  private readonly tree: string;
  private readonly work: string;

  private constructor(folder: string, tree: string, work: string) {
    this.folder = folder;
    this.tree = tree;
    this.work = work;
  }

  /** Builds the tree of this checkout. */
  static async make(): Promise<Releases> {
    const work = tempDir('releases').path;
    const [tree, native, folder] = ['tree', 'native', 'archives'].map((name) => join(work, name)) as [
      string,
      string,
      string,
    ];
    for (const each of [tree, native, folder]) await mkdir(each);
    const release = releaseOf(musterVersion);
    await makeTree(tree, release, await nativeParts(release, native, interrupted));
    return new Releases(folder, tree, work);
  }

  /** @returns the name of the archive, in `folder` */
  async archive(change: ReleaseChange): Promise<string> {
    const { version, prelude = '', schemaStep = 0 } = change;
    const release = releaseOf(version);
    const tree = join(this.work, version);
    await cp(this.tree, tree, { recursive: true, verbatimSymlinks: true });
    const dist = join(tree, 'lib/muster/dist');
    for (const name of await readdir(dist)) {
      if (!name.endsWith('.mjs')) continue;
      const text = await readFile(join(dist, name), 'utf8');
      const own = text.replaceAll(`musterVersion = "${musterVersion}"`, `musterVersion = "${version}"`);
      await writeFile(join(dist, name), name === 'muster.mjs' ? `${prelude}${own}` : own);
    }
    const aboutPath = join(tree, 'lib/muster/release.json');
    const about = JSON.parse(await readFile(aboutPath, 'utf8')) as { storeSchema: number };
    const storeSchema = about.storeSchema + schemaStep;
    await writeFile(aboutPath, JSON.stringify({ ...about, ...release, storeSchema }));
    const sumsPath = 'lib/muster/SHA256SUMS';
    const paths = (await filesBelow(tree)).map((path) => path.slice(tree.length + 1));
    const listed = paths.filter((path) => path !== sumsPath).sort();
    await writeFile(join(tree, sumsPath), await sums('sha256', tree, listed));
    const name = tarballName(release);
    await makeTarball(tree, join(this.folder, name), release, { gzip: 1, xz: 0, interrupted });
    await run('rm', ['-r', tree]);
    return name;
  }
}

function releaseOf(version: string) {
  const commit = '0123456789abcdef0123456789abcdef01234567';
  return { version, arch: process.arch as 'x64' | 'arm64', commit, epochS: 1_700_000_000 };
}
