/**
 * Which Python environment a person who types `python` here would get. Pure: files are asked for by a function.
 * docs/decisions/user-environment.md says why no more than this is sent.
 */
import { dirname, join } from 'node:path';

type Variables = Readonly<Record<string, string>>;

export interface UserEnvironment {
  /** For the job; empty when nothing was found. */
  readonly variables: Variables;
  /** Lines for people: what was found and is used, or is here and is not. */
  readonly notes: readonly string[];
}

interface Found {
  /** Its programs are in `bin` below. */
  readonly prefix: string;
  readonly variables: Variables;
  readonly note: string;
}

/** Of what `conda activate`, `activate` and their kin set; the rest is made from these by the program itself. */
const condaVariables = ['CONDA_PREFIX', 'CONDA_DEFAULT_ENV', 'PIXI_PROJECT_ROOT', 'PIXI_ENVIRONMENT_NAME'];

/**
 * @param workdir absolute; where the job starts, and the first directory that is searched for a project
 * @param exists whether there is a file or directory at an absolute path
 */
export function detectEnvironment(
  variables: Variables,
  workdir: string,
  exists: (path: string) => boolean,
): UserEnvironment {
  const found = activeOf(variables, exists) ?? projectOf(workdir, exists);
  const notes = [
    ...(found === null ? [] : [found.note]),
    ...(found === null ? poetryNotes(workdir, exists) : []),
    ...direnvNotes(variables, workdir, exists),
  ];
  if (found === null) return { variables: {}, notes };
  const path = withFirst(join(found.prefix, 'bin'), variables['PATH'] ?? '');
  return { variables: { ...found.variables, PATH: path }, notes };
}

/** What was activated in the shell; of a venv inside a conda environment, the one whose programs PATH finds first. */
function activeOf(variables: Variables, exists: (path: string) => boolean): Found | null {
  const { VIRTUAL_ENV: venv = '', CONDA_PREFIX: conda = '', PATH = '' } = variables;
  const active: Found[] = [];
  if (venv !== '' && exists(join(venv, 'bin/python'))) {
    const note = `using the venv ${venv} (VIRTUAL_ENV)`;
    active.push({ prefix: venv, variables: { VIRTUAL_ENV: venv }, note });
  }
  if (conda !== '' && exists(join(conda, 'bin'))) {
    const kind = variables['PIXI_PROJECT_ROOT'] === undefined ? 'conda' : 'pixi';
    const sent = condaVariables.filter((name) => variables[name] !== undefined);
    const own = Object.fromEntries(sent.map((name) => [name, variables[name] ?? '']));
    const note = `using the ${kind} environment ${conda} (CONDA_PREFIX)`;
    active.push({ prefix: conda, variables: own, note });
  }
  const folders = PATH.split(':');
  const place = ({ prefix }: Found) => {
    const index = folders.indexOf(join(prefix, 'bin'));
    return index < 0 ? folders.length : index;
  };
  return active.toSorted((a, b) => place(a) - place(b))[0] ?? null;
}

/** What `uv run`, `poetry run` or `pixi run` would use here, although nothing was activated. */
function projectOf(workdir: string, exists: (path: string) => boolean): Found | null {
  for (const directory of upwards(workdir)) {
    const marker = ['uv.lock', 'poetry.lock', 'pyproject.toml'].find((name) => exists(join(directory, name)));
    const venv = join(directory, '.venv');
    if (marker !== undefined && exists(join(venv, 'bin/python'))) {
      const note = `using the venv ${venv} (beside ${marker})`;
      return { prefix: venv, variables: { VIRTUAL_ENV: venv }, note };
    }
    const pixi = join(directory, '.pixi/envs/default');
    if (exists(join(pixi, 'bin'))) {
      const note = `using the pixi environment ${pixi}`;
      return { prefix: pixi, variables: { CONDA_PREFIX: pixi }, note };
    }
  }
  return null;
}

/** Where Poetry keeps environments outside of projects, only Poetry knows. */
function poetryNotes(workdir: string, exists: (path: string) => boolean): readonly string[] {
  const project = upwards(workdir).find((directory) => exists(join(directory, 'poetry.lock')));
  if (project === undefined) return [];
  return [
    `${join(project, 'poetry.lock')}: no environment is active; \`poetry run\` before this command uses it`,
  ];
}

function direnvNotes(
  variables: Variables,
  workdir: string,
  exists: (path: string) => boolean,
): readonly string[] {
  const directory = upwards(workdir).find((each) => exists(join(each, '.envrc')));
  if (directory === undefined) return [];
  const file = join(directory, '.envrc');
  return variables['DIRENV_DIR'] === undefined
    ? [`${file} is not loaded, and its variables are not sent: \`direnv allow\`, then --export NAMES`]
    : [`variables of ${file} are not sent: --export NAMES sends some, --export all every one`];
}

function upwards(directory: string): readonly string[] {
  const parent = dirname(directory);
  return parent === directory ? [directory] : [directory, ...upwards(parent)];
}

function withFirst(folder: string, path: string): string {
  const others = path.split(':').filter((each) => each !== '' && each !== folder);
  return [folder, ...others].join(':');
}

/** Of this shell, this terminal or this login, and nothing to a job on another node. */
const ofThisShell =
  /^(?:_|PWD|OLDPWD|SHLVL|SHELLOPTS|BASHOPTS|TERM.*|COLUMNS|LINES|DISPLAY|WAYLAND_DISPLAY|SSH_.*|XDG_.*|DBUS_.*|MUSTER_.*)$/;

/** What `--export all` sends of these variables. */
export function exportable(variables: Variables): Variables {
  return Object.fromEntries(
    Object.entries(variables).filter(
      ([name]) => /^[A-Za-z_][A-Za-z0-9_]{0,254}$/.test(name) && !ofThisShell.test(name),
    ),
  );
}
