/**
 * The secrets of this node's tasks, in memory alone: a directory per task on a tmpfs, gone when the machine is switched off. It is
 * made in one step, so that an agent which was killed finds all of it or nothing.
 *
 *   KEY/values/NAME      what the agent knows, for the variables of the task and to mask its output
 *   KEY/task/files/NAME  what the task reads; `task` may be given to its account, and `files` is mounted into a container
 *   KEY/task/variables/export.sh  sets the variables in a container, whose engine would show and store those that it is told
 */
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { TaskName } from '../taskFacts/execution.ts';
import { everything, Mask } from '../taskFacts/mask.ts';
import { removeTree } from '../taskFacts/removal.ts';

export interface SecretValue {
  readonly name: string;
  readonly value: Uint8Array;
}

/** How a task gets a secret. */
export interface UsedSecret {
  readonly name: string;
  /** null: as a file. */
  readonly variable: string | null;
}

/** What a task finds. */
export interface ProvidedSecrets {
  /** Of the files, on the node; the one above it is the task's alone. null: there are none. */
  readonly directory: string | null;
  /** Values by the names of variables. */
  readonly variables: Readonly<Record<string, string>>;
  /** Of a script that sets them in any POSIX shell, on the node. null: there are none. */
  readonly script: string | null;
}

/** Of statfs(2). */
const memoryFileSystems: ReadonlySet<number> = new Set([0x01021994, 0x858458f6]);

/** Below the directory of a task. */
const scriptPath = 'task/variables/export.sh';

/** Names of variables are words of a shell: specs with others are refused. Whatever is between single quotes is the value. */
function scriptOf(used: readonly UsedSecret[], values: readonly SecretValue[]): Buffer {
  const lines = used.flatMap(({ name, variable }) => {
    const value = values.find((each) => each.name === name)?.value;
    if (variable === null || value === undefined) return [];
    const quoted = Buffer.from(value).toString('latin1').replaceAll("'", String.raw`'\''`);
    return `export ${variable}='${quoted}'\n`;
  });
  return Buffer.from(lines.join(''), 'latin1');
}

export class TaskSecrets {
  private readonly memory: string;
  /** How the name of its directory there begins. */
  private readonly prefix: string;
  /** The directory, once it was made or found. */
  private found: string | null = null;
  private readonly masks = new Map<TaskName, Pick<Mask, keyof Mask>>();

  /** @param memory a directory on a tmpfs @param dataDir of the agent; each agent of a machine has its own */
  constructor(memory: string, dataDir: string) {
    const own = createHash('sha256').update(dataDir).digest('hex').slice(0, 16);
    this.memory = memory;
    this.prefix = `muster-${own}`;
  }

  has(key: TaskName): boolean {
    const root = this.findRoot();
    return root !== null && existsSync(join(root, key));
  }

  /**
   * Keeps the values that a task uses. Repeated, it does nothing.
   * @throws {Error} with a sentence for people
   */
  keep(key: TaskName, used: readonly UsedSecret[], values: readonly SecretValue[]): void {
    if (this.has(key)) return;
    const root = this.findRoot() ?? this.makeRoot();
    const unfinished = join(root, `.${key}`);
    rmSync(unfinished, { recursive: true, force: true });
    makeDirectory(unfinished, 0o711);
    const files = join(unfinished, 'task', 'files');
    makeDirectory(join(unfinished, 'values'), 0o700);
    makeDirectory(join(unfinished, 'task'), 0o700);
    makeDirectory(files, 0o755);
    const asFiles = new Set(used.filter(({ variable }) => variable === null).map(({ name }) => name));
    for (const { name, value } of values) {
      makeFile(join(unfinished, 'values', name), value, 0o400);
      // Anyone who may pass through `task`, or sees `files` in a container, may read them.
      if (asFiles.has(name)) makeFile(join(files, name), value, 0o444);
    }
    const script = scriptOf(used, values);
    if (script.length > 0) {
      makeDirectory(join(unfinished, scriptPath, '..'), 0o755);
      makeFile(join(unfinished, scriptPath), script, 0o444);
    }
    this.masks.delete(key);
    renameSync(unfinished, join(root, key));
  }

  /**
   * @throws {Error} with a sentence for people: a value is missing, or cannot be that of a variable
   */
  provided(key: TaskName, used: readonly UsedSecret[]): ProvidedSecrets {
    const directory = this.directory(key);
    const variables = used.flatMap(({ name, variable }) => {
      if (variable === null) return [];
      const value = readFileSync(join(directory, 'values', name));
      if (value.includes(0))
        throw new Error(`secret ${name} has a zero byte, so it cannot be a variable: use it as a file`);
      return [[variable, value.toString()]];
    });
    const hasFiles = used.some(({ variable }) => variable === null);
    return {
      directory: hasFiles ? join(directory, 'task', 'files') : null,
      variables: Object.fromEntries(variables),
      script: variables.length === 0 ? null : join(directory, scriptPath),
    };
  }

  /**
   * What hides the values of a task; where they are lost, everything is hidden.
   * @param used as its spec says; null: nobody knows its spec
   * @returns null: it has none
   */
  maskOf(key: TaskName, used: readonly UsedSecret[] | null): Pick<Mask, keyof Mask> | null {
    if (used === null ? !this.has(key) : used.length === 0) return null;
    let mask = this.masks.get(key);
    if (mask === undefined) {
      mask = this.has(key) ? new Mask(this.values(key)) : everything;
      this.masks.set(key, mask);
    }
    return mask;
  }

  /** A part of it may be the account's of the task, whose other processes may still change it. @throws {Error} when something is left */
  async remove(key: TaskName): Promise<void> {
    this.masks.delete(key);
    if (this.has(key)) await removeTree(this.directory(key));
  }

  /** Removes what earlier agents have left of all other tasks. */
  async keepOnly(keys: ReadonlySet<TaskName>): Promise<void> {
    const root = this.findRoot();
    if (root === null) return;
    for (const key of readdirSync(root)) if (!keys.has(key)) await removeTree(join(root, key));
  }

  private values(key: TaskName): readonly Buffer[] {
    const directory = join(this.directory(key), 'values');
    return readdirSync(directory).map((name) => readFileSync(join(directory, name)));
  }

  /**
   * The directory that an agent with these data has made. Everybody may create names beside it, but nobody a directory that
   * belongs to this user; so the owner tells which one it is, and a name that somebody else took is passed over.
   */
  private findRoot(): string | null {
    if (this.found !== null && isOwn(this.found)) return this.found;
    const names = existsSync(this.memory) ? readdirSync(this.memory) : [];
    const paths = names.filter((name) => name.startsWith(this.prefix)).map((name) => join(this.memory, name));
    this.found = paths.find(isOwn) ?? null;
    return this.found;
  }

  /** Under a name that is free, whoever has taken others. */
  private makeRoot(): string {
    const { memory } = this;
    if (!memoryFileSystems.has(statfsSync(memory).type)) {
      throw new Error(
        `${memory} is not on a tmpfs, so secrets would be written to a disk: mount a tmpfs there`,
      );
    }
    const { mode } = statSync(memory);
    if ((mode & 0o022) !== 0 && (mode & 0o1000) === 0) {
      throw new Error(
        `everybody may rename what others keep in ${memory}, so no secrets are put there: chmod +t ${memory}`,
      );
    }
    const root = mkdtempSync(join(memory, `${this.prefix}-`));
    chmodSync(root, 0o711);
    this.found = root;
    return root;
  }

  private directory(key: TaskName): string {
    return join(this.findRoot() ?? join(this.memory, this.prefix), key);
  }
}

/** A directory, not a link to one, of this user, in which nobody else has ever been able to put anything. */
function isOwn(path: string): boolean {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  return stats?.isDirectory() === true && stats.uid === process.geteuid?.() && (stats.mode & 0o777) === 0o711;
}

/** With this mode whatever the umask is: under its unit the agent's lets nobody else in, and a task is somebody else. */
function makeDirectory(path: string, mode: number): void {
  mkdirSync(path, { mode });
  chmodSync(path, mode);
}

function makeFile(path: string, content: Uint8Array, mode: number): void {
  writeFileSync(path, content, { flag: 'wx', mode });
  chmodSync(path, mode);
}
