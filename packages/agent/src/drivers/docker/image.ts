/** The image of a task: the node's own copy, else the registry's. */
import type { Logger } from '@muster/common/log';
import { DriverError } from '../../taskFacts/errors.ts';
import type { Engine } from './engine.ts';
import type { ImageDetails, PullStep } from './engineAnswers.ts';
import { EngineError } from './engineHttp.ts';

export interface EnsureImageOptions {
  readonly log: Logger;
  readonly abort: AbortSignal;
  /** Gets the progress as a text for users: `pulls image trainer:1: 3 of 7 layers`. */
  readonly onDoing: (what: string) => void;
}

/**
 * @throws {DriverError} `image_pull` with the registry's message
 * @throws the reason of `abort`; the engine gives the pull up as well
 */
export async function ensureImage(
  engine: Engine,
  image: string,
  { log, abort, onDoing }: EnsureImageOptions,
): Promise<ImageDetails> {
  const found = await inspect(engine, image);
  if (found !== null) return found;
  log.info({ image }, 'pulling the image');
  const progress = new PullProgress();
  onDoing(`pulls image ${image}`);
  const onStep = (step: PullStep) => {
    log.debug({ image, ...step }, 'pulling the image');
    const layers = progress.after(step);
    if (layers !== null) onDoing(`pulls image ${image}: ${layers}`);
  };
  try {
    await engine.pullImage(withTag(image), onStep, abort);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw new DriverError(
      'image_pull',
      `cannot pull the image ${image}: ${error.message}. Check its name; where the registry wants a login, ` +
        `pull it on the node yourself (docker login, docker pull ${image}): Muster uses the copy it finds there`,
      { cause: error },
    );
  }
  const pulled = await inspect(engine, image);
  if (pulled !== null) return pulled;
  throw new DriverError(
    'image_pull',
    `the image ${image} was pulled, and the container engine does not have it`,
  );
}

/** The engine refuses a name that can be no image's; that is no different from one that nobody has. */
async function inspect(engine: Engine, image: string): Promise<ImageDetails | null> {
  try {
    return await engine.inspectImage(image);
  } catch (error) {
    if (error instanceof EngineError && error.status === 400) return null;
    throw error;
  }
}

/** As `docker pull` completes a name. */
export function withTag(image: string): string {
  const lastPart = image.slice(image.lastIndexOf('/') + 1);
  return /[:@]/.test(lastPart) ? image : `${image}:latest`;
}

const begunStatus = 'Pulling fs layer';
const doneStatuses = new Set(['Pull complete', 'Already exists']);

/** Counts the layers. There are more of them until the engine has read the whole list, which takes it a moment. */
export class PullProgress {
  private readonly isDone = new Map<string, boolean>();
  private lastText = '';

  /** @returns `3 of 7 layers`; null: as before */
  after({ id, status }: PullStep): string | null {
    if (id === null) return null;
    if (doneStatuses.has(status)) this.isDone.set(id, true);
    else if (status === begunStatus) this.isDone.set(id, false);
    const done = [...this.isDone.values()].filter((isDone) => isDone).length;
    const text = `${done} of ${this.isDone.size} layers`;
    if (this.isDone.size === 0 || text === this.lastText) return null;
    this.lastText = text;
    return text;
  }
}
