/** What the engine says while it pulls an image. Steps of a layer carry its id; others have none, or the image's tag. */
export interface PullStep {
  readonly id: string | null;
  /** `Pulling fs layer`, `Downloading`, `Pull complete`, … */
  readonly status: string;
}

const begunStatus = 'Pulling fs layer';
const doneStatuses = new Set(['Pull complete', 'Already exists']);

/** Counts the layers. There are more of them until the engine has read the whole list, which takes it a moment. */
export class PullProgress {
  private readonly isDone = new Map<string, boolean>();
  private said = '';

  /** @returns `3 of 7 layers`; null: as before */
  after({ id, status }: PullStep): string | null {
    if (id === null) return null;
    if (doneStatuses.has(status)) this.isDone.set(id, true);
    else if (status === begunStatus) this.isDone.set(id, false);
    const done = [...this.isDone.values()].filter((isDone) => isDone).length;
    const words = `${done} of ${this.isDone.size} layers`;
    if (this.isDone.size === 0 || words === this.said) return null;
    this.said = words;
    return words;
  }
}
