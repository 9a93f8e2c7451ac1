/** Releases of this checkout as archives, and others made from one: newer ones, and some that do not start. */
import { execFile } from 'node:child_process';
import { cp, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
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

/** In a bundle, of packages/coordinator/src/store/schema.ts; a long list takes a line for each. */
const schemaSteps = /\bsteps = \[\s*(initialSchema,[^\]]+)\]/;

/** The name of the script of short commands, without its `.js`. */
const shortScript = /part-short-[0-9a-f]+(?=\.js)/g;

export interface ReleaseChange {
  readonly version: string;
  /** Statements that its programs begin with. */
  readonly prelude?: string;
  /** Its store has one more table. */
  readonly hasNewSchema?: boolean;
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
    const { version, prelude = '', hasNewSchema = false } = change;
    const release = releaseOf(version);
    const tree = join(this.work, version);
    await cp(this.tree, tree, { recursive: true, verbatimSymlinks: true });
    const dist = join(tree, 'lib/muster/dist');
    let schemas = 0;
    for (const name of await readdir(dist)) {
      if (!/\.m?js$/.test(name)) continue;
      const text = await readFile(join(dist, name), 'utf8');
      const own = text
        // Compiled code is kept by the name of the short script, which is that of its content.
        .replaceAll(shortScript, `$&-${version}`)
        .replaceAll(`musterVersion = "${musterVersion}"`, `musterVersion = "${version}"`)
        .replace(schemaSteps, (all, steps: string) => {
          schemas += 1;
          return hasNewSchema ? `steps = [${steps}, "create table of_next (id integer) strict;"]` : all;
        });
      await rm(join(dist, name));
      const ownName = name.replace(shortScript, `$&-${version}`);
      await writeFile(join(dist, ownName), name === 'muster.mjs' ? `${prelude}${own}` : own);
    }
    if (schemas === 0) throw new Error('no bundle has the steps of the schema as they were looked for');
    const aboutPath = join(tree, 'lib/muster/release.json');
    const about = JSON.parse(await readFile(aboutPath, 'utf8')) as { storeSchema: number };
    const storeSchema = about.storeSchema + (hasNewSchema ? 1 : 0);
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
