/** What was probably meant by a program or a file that is not there: read from the node's directories, and changes nothing. */
import { accessSync, constants, opendirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { closest } from '@muster/common/spec/suggest';

/** Of one directory; those with more hold data. */
const entriesMax = 5_000;
/** Other names are no slips in typing this one, and comparing all would take long. */
const lengthsApartMax = 3;

/** What only a shell understands. */
const shellCharacters = /[\s|&;<>()$`*?~]/;

/** @returns how to write a command line that was given as one word; null: it is none */
export function asShellCommand(command: readonly string[]): string | null {
  const [only = ''] = command;
  if (command.length !== 1 || !shellCharacters.test(only)) return null;
  return `sh -c '${only.replaceAll("'", `'\\''`)}'`;
}

/** @returns the absolute path of a file that has nearly this name; null: none has */
export function nearestFile(path: string): string | null {
  const folder = dirname(path);
  const name = nearestName(basename(path), namesIn(folder));
  return name === null ? null : join(folder, name);
}

/** @param folders absolute, as in PATH @returns a program that has nearly this name; null: none has */
export function nearestProgram(name: string, folders: readonly string[]): string | null {
  return nearestName(
    name,
    [...new Set(folders)].flatMap((folder) => namesIn(folder)),
  );
}

/** How one starts a file of the working directory. */
export function startOf(path: string): string {
  const name = basename(path);
  if (name.endsWith('.py')) return `python ${name}`;
  return isExecutable(path) ? `./${name}` : `sh ${name}`;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function nearestName(name: string, names: readonly string[]): string | null {
  const similar = names.filter((each) => Math.abs(each.length - name.length) <= lengthsApartMax);
  return closest(name, similar);
}

/** Empty for what is no directory, or not ours to read. */
function namesIn(folder: string): readonly string[] {
  const names: string[] = [];
  try {
    const directory = opendirSync(folder);
    try {
      for (;;) {
        const entry = directory.readSync();
        if (entry === null || names.length >= entriesMax) return names;
        names.push(entry.name);
      }
    } finally {
      directory.closeSync();
    }
  } catch {
    return names;
  }
}
