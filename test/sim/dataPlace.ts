/** A directory of the coordinator's machine in which files arrive, and which is away at times. */
import { MusterError } from '@muster/common/errors';
import type { ListData } from '@muster/coordinator/triggers/dataListing';
import type { History } from './history.ts';

export const watchedDirectory = '/data/incoming';

export class DataPlace {
  private readonly history: History;
  /** Each state of it has another number of them. */
  private files = 0;
  private isAway = false;

  constructor(history: History) {
    this.history = history;
  }

  add(count: number): void {
    this.files += count;
    this.history.add({ kind: 'dataCame', files: this.files });
  }

  setAway(isAway: boolean): void {
    this.isAway = isAway;
    this.history.add({ kind: 'dataAway', isAway });
  }

  readonly list: ListData = async (directory) => {
    if (directory !== watchedDirectory || this.isAway)
      throw new MusterError('invalid', `directory: "${directory}" is not there`, {
        problems: [{ path: 'directory', message: 'is not there', expected: 'a directory', suggestion: null }],
      });
    return { digest: `sha256:${this.files}`, files: this.files };
  };
}
