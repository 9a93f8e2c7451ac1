/**
 * Tells a dcgm-exporter on this node which job runs on which GPU. With `--hpc-job-mapping-dir` the exporter looks for a
 * file per GPU there, named by its number (`0`) or by number and MIG instance (`0.9`), with a job id on each line, and
 * puts them into the label `hpc_job`.
 *
 * The files outlive the agent as the tasks do. What is left of tasks that ended meanwhile goes with the next start; files
 * that do not look like ours, such as those of a batch system beside Muster, are never touched.
 */
import { constants } from 'node:fs';
import { lstat, mkdir, open, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '@muster/common/errors';
import type { Gpu } from '@muster/common/hardware';
import { isJobId, type TaskRef } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';

export interface HpcJobFilesOptions {
  /** Created when absent. */
  readonly dir: string;
  readonly log: Logger;
}

/** Of a file of ours: a line for each task that may share a GPU instance. */
const fileBytesMax = 4096;
const temporaryName = '.muster-new';

export class HpcJobFiles {
  private readonly options: HpcJobFilesOptions;
  private wanted: ReadonlyMap<string, string> = new Map();
  private written: ReadonlyMap<string, string> | null = null;
  private pass: Promise<void> | null = null;
  private again = false;
  /** Each problem is reported once. */
  private readonly reported = new Set<string>();

  constructor(options: HpcJobFilesOptions) {
    this.options = options;
  }

  /** Makes the files name who holds the GPUs now. Returns at once: the directory may be on a file system that hangs. */
  update(gpus: readonly Gpu[], holders: ReadonlyMap<string, TaskRef>): void {
    this.wanted = mappingFiles(gpus, holders);
    if (this.pass === null) this.begin();
    else this.again = true;
  }

  /** Resolves when the files are as the last update wanted them, or could not be made so. */
  async settled(): Promise<void> {
    while (this.pass !== null) await this.pass;
  }

  private begin(): void {
    this.again = false;
    this.pass = this.makeSo(this.wanted)
      .catch((error: unknown) =>
        this.complain(`the job files for dcgm-exporter cannot be kept: ${messageOf(error)}`),
      )
      .finally(() => {
        this.pass = null;
        if (this.again) this.begin();
      });
  }

  private async makeSo(wanted: ReadonlyMap<string, string>): Promise<void> {
    const { dir } = this.options;
    if (this.written !== null && isSame(this.written, wanted)) return;
    await mkdir(dir, { recursive: true, mode: 0o755 });
    if (!(await lstat(dir)).isDirectory())
      throw new Error(`${dir} is not a directory; name the directory itself, not a link to it`);
    const names = (await readdir(dir)).filter((name) => /^\d{1,4}(?:\.\d{1,4})?$/.test(name));
    for (const name of names) {
      if (!wanted.has(name) && (await this.isOurs(name))) await rm(join(dir, name), { force: true });
    }
    const present = new Set(names);
    for (const [name, content] of wanted) {
      if (present.has(name) && !(await this.isOurs(name)))
        this.complain(
          `${join(dir, name)} is not one of Muster's files and is left as it is; remove it if it is stale`,
        );
      else await this.write(name, content);
    }
    this.written = wanted;
  }

  /** The exporter sees the old content or the new, and never looks at a name that is no number. */
  private async write(name: string, content: string): Promise<void> {
    const temporary = join(this.options.dir, temporaryName);
    await rm(temporary, { force: true });
    const file = await open(temporary, 'wx', 0o644);
    try {
      // Whatever the umask of the agent is: the exporter runs as another user.
      await file.chmod(0o644);
      await file.writeFile(content);
    } finally {
      await file.close();
    }
    await rename(temporary, join(this.options.dir, name));
  }

  /** A regular file with nothing but job ids of Muster. */
  private async isOurs(name: string): Promise<boolean> {
    const path = join(this.options.dir, name);
    if (!(await lstat(path)).isFile()) return false;
    // Anyone who can write here could put a link in its place meanwhile.
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      if ((await file.stat()).size > fileBytesMax) return false;
      const lines = (await file.readFile('utf8')).split('\n').filter((line) => line !== '');
      return lines.length > 0 && lines.every(isJobId);
    } finally {
      await file.close();
    }
  }

  private complain(message: string): void {
    if (this.reported.has(message)) return;
    this.reported.add(message);
    this.options.log.warn({ dir: this.options.dir }, message);
  }
}

/** Content of the files by name. Cards without a number cannot be named, and an exporter knows no simulated ones. */
function mappingFiles(
  gpus: readonly Gpu[],
  holders: ReadonlyMap<string, TaskRef>,
): ReadonlyMap<string, string> {
  const jobs = new Map<string, Set<string>>();
  for (const { uuid, index, mig, simulated } of gpus) {
    const task = holders.get(uuid);
    if (task === undefined || index === null || simulated) continue;
    const name = mig === null ? String(index) : `${index}.${mig.gpuInstanceId}`;
    jobs.set(name, (jobs.get(name) ?? new Set()).add(task.jobId));
  }
  return new Map(Array.from(jobs, ([name, ids]) => [name, `${[...ids].sort().join('\n')}\n`]));
}

function isSame(one: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>): boolean {
  return one.size === other.size && Array.from(one).every(([name, content]) => other.get(name) === content);
}
