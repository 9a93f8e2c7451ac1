/** Where the files lie that a machine is installed from: a release, or a checkout that is built. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CliError } from '../errors.ts';

export interface ReleaseFiles {
  /** Absolute: starts `muster`. */
  readonly launcher: string;
  /** Texts of the units, by their names. */
  readonly units: ReadonlyMap<string, string>;
}

/** Services do not see these places, and whoever owns them could replace the program. */
const privatePlaces = ['home', 'root', 'tmp', 'var/tmp', 'run'].map((name) => `/${name}/`);

/**
 * @param programDir the folder of the bundles, or of the sources of the command line
 * @throws {CliError} when a service could not be started from there
 */
export function releaseFiles(programDir: string): ReleaseFiles {
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
            ? 'Unpack the release below /opt or /usr/local: tar -xzf FILE -C /usr/local --strip-components=1'
            : 'Move the checkout, to /opt for example.',
        ],
      },
    );
  }
  const names = readdirSync(unitsDir).filter((name) => name.endsWith('.service'));
  const units = names.map((name) => [name, readFileSync(join(unitsDir, name), 'utf8')] as const);
  return { launcher, units: new Map(units) };
}
