/** Where the files lie that a machine is installed from: a release, or a checkout that is built. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CliError } from '../errors.ts';
import { type ReleaseTree, readReleaseTree, releaseLauncher, requireIntact } from './releaseTree.ts';

export interface ReleaseFiles {
  /** A release from its archive, which is copied to where services see it; null: the program stays where it lies. */
  readonly tree: ReleaseTree | null;
  /** Absolute: starts `muster`, once the tree is copied. */
  readonly launcher: string;
  /** Texts of the units, by their names. */
  readonly units: ReadonlyMap<string, string>;
}

/** Services do not see these places, and anyone who owns them could replace the program. */
const privatePlaces = ['home', 'root', 'tmp', 'var/tmp', 'run'].map((name) => `/${name}/`);

/**
 * @param programDir the folder of the bundles, or of the sources of the command line
 * @throws {CliError} when a service could not be started from there
 */
export function releaseFiles(programDir: string): ReleaseFiles {
  const tree = treeFromArchive(programDir);
  if (tree !== null) {
    requireIntact(tree);
    return {
      tree,
      launcher: releaseLauncher,
      units: unitsIn(join(programDir, '../systemd')),
    };
  }
  const inRelease = join(programDir, '../systemd');
  const isRelease = existsSync(inRelease);
  // `dist` lies at the top of a checkout; the sources of the command line lie three folders below it.
  const top = join(programDir, programDir.endsWith('/src') ? '../../..' : '..');
  const launcher = isRelease ? join(programDir, '../muster') : join(top, 'packages/cli/bin/muster');
  const unitsDir = isRelease ? inRelease : join(top, 'deploy/systemd');
  if (privatePlaces.some((place) => launcher.startsWith(place))) {
    throw new CliError(
      `services cannot run ${launcher}: they see nothing of ${launcher.split('/', 2).join('/')}`,
      {
        hints: [
          isRelease
            ? 'Install Muster from its archive or package.'
            : 'Move the checkout, to /srv for example.',
        ],
      },
    );
  }
  return { tree: null, launcher, units: unitsIn(unitsDir) };
}

/** @returns null: programs of a checkout, of Debian's package or of npm's, which have an owner that replaces them */
function treeFromArchive(programDir: string): ReleaseTree | null {
  const top = join(programDir, '../../..');
  const isRelease = programDir === join(top, 'lib/muster/dist');
  return !isRelease || top === '/usr' || existsSync(join(top, 'package.json')) ? null : readReleaseTree(top);
}

/** @returns texts of the units in a folder, by their names */
export function unitsIn(folder: string): ReadonlyMap<string, string> {
  const names = readdirSync(folder).filter((name) => name.endsWith('.service'));
  return new Map(names.map((name) => [name, readFileSync(join(folder, name), 'utf8')]));
}
