/**
 * The dozen calls of the Docker Engine API that the driver needs, as plain HTTP over the engine's unix socket.
 * Why there is no client library behind it: docs/decisions/docker-client.md.
 */

import type { IncomingMessage } from 'node:http';
import {
  type Container,
  type ContainerAnswer,
  type EngineIdentity,
  type EngineInfo,
  type ImageAnswer,
  type ImageDetails,
  type InfoAnswer,
  isExecutableFile,
  type PullStep,
  toContainer,
  toIdentity,
  toImage,
  toInfo,
  type VersionAnswer,
} from './engineAnswers.ts';
import {
  type EngineCall,
  EngineError,
  exchange,
  pieces,
  readJsonAnswer,
  readTextAnswer,
} from './engineHttp.ts';
import { archivedFile } from './tarFile.ts';

/**
 * We speak the oldest API that has all we need, or the engine's own oldest where that is newer: Debian 12's Docker
 * 20.10 knows nothing above 1.41, Docker 29 refuses everything below 1.44. What we use is the same in all of them.
 */
const wantedApiVersion = '1.41';

/** For answers that need no work. An engine that takes longer hangs, and the caller has to be informed. */
const readDeadlineMs = 30_000;
/** For calls that move layers and mounts on a disk that may be busy. */
const changeDeadlineMs = 120_000;
/** Of a file of a container that is read. */
const smallBytesMax = 4 * 1024 * 1024;
/** A pull may take hours; it hangs when nothing at all arrives for this long. */
const pullIdleMs = 300_000;

/** Every method throws {@link EngineError} when the engine refuses, is away or misses its deadline. */
export class Engine {
  readonly socketPath: string;
  private knownIdentity: Promise<EngineIdentity> | null = null;

  constructor(socketPath: string) {
    this.socketPath = socketPath;
  }

  /** Asked once, and again after the engine was away: another version may have come back. */
  identity(): Promise<EngineIdentity> {
    this.knownIdentity ??= this.identify().catch((error: unknown) => {
      this.knownIdentity = null;
      throw error;
    });
    return this.knownIdentity;
  }

  async info(): Promise<EngineInfo> {
    return toInfo(await this.get<InfoAnswer>('/info'));
  }

  /** null: the engine does not have the image. */
  async inspectImage(image: string): Promise<ImageDetails | null> {
    const answer = await unlessAbsent(this.get<ImageAnswer>(`/images/${encodeURIComponent(image)}/json`));
    return answer === null ? null : toImage(answer);
  }

  /**
   * Fetches an image and resolves when the engine has it.
   * @param reference with a tag or digest: without one the engine would fetch every tag there is
   * @param onStep gets what the engine reports
   * @param abort ends the connection, with which the engine gives the pull up
   */
  async pullImage(reference: string, onStep: (step: PullStep) => void, abort: AbortSignal): Promise<void> {
    const idle = new AbortController();
    const hung = new EngineError(null, `nothing arrived for ${pullIdleMs / 1000} s`);
    const timer = setTimeout(() => idle.abort(hung), pullIdleMs);
    const path = '/images/create';
    const signal = AbortSignal.any([idle.signal, abort]);
    const call = { method: 'POST', path, query: { fromImage: reference }, deadlineMs: null, signal } as const;
    try {
      let rest = '';
      for await (const piece of this.stream(call)) {
        timer.refresh();
        const lines = (rest + piece.toString('utf8')).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) readPullStep(line, onStep);
      }
      readPullStep(rest, onStep);
    } finally {
      clearTimeout(timer);
    }
  }

  /** @returns the container's id */
  async createContainer(name: string, body: object): Promise<string> {
    const call = { method: 'POST', path: '/containers/create', query: { name }, body } as const;
    return (await this.json<{ Id: string }>({ ...call, deadlineMs: changeDeadlineMs })).Id;
  }

  /** Starting a running container changes nothing. */
  async startContainer(id: string): Promise<void> {
    await this.post(`/containers/${id}/start`, { deadlineMs: changeDeadlineMs });
  }

  /** null: there is no such container. */
  async inspectContainer(idOrName: string): Promise<Container | null> {
    const answer = await unlessAbsent(this.get<ContainerAnswer>(`/containers/${idOrName}/json`));
    return answer === null ? null : toContainer(answer);
  }

  /** The labels of each container, running or not, that carries `label` (`name=value`). */
  async listContainers(label: string): Promise<readonly Readonly<Record<string, string>>[]> {
    const query = { all: '1', filters: JSON.stringify({ label: [label] }) };
    const containers = await this.get<{ Labels: Record<string, string> | null }[]>('/containers/json', query);
    return containers.map((container) => container.Labels ?? {});
  }

  /** Whether a path of the container's file system, volumes included, is a file that can be executed. */
  async isExecutable(id: string, path: string): Promise<boolean> {
    const call = { method: 'HEAD', path: `/containers/${id}/archive`, query: { path } } as const;
    const response = await unlessAbsent(this.open({ ...call, deadlineMs: changeDeadlineMs }));
    response?.resume();
    const stat = response === null ? null : pathStat(response);
    return stat !== null && isExecutableFile(stat);
  }

  /** A file of a container that does not run; links are followed as the engine does. null: it is not there, or is not a file. */
  async readFile(id: string, path: string): Promise<Buffer | null> {
    const found = await this.readPath(id, path);
    // `linkTarget` is the end of the whole chain of links, within the container.
    if (found === null || found.linkTarget === '') return found?.file ?? null;
    const target = await this.readPath(id, found.linkTarget);
    if (target === null || target.linkTarget === '') return target?.file ?? null;
    throw new EngineError(500, `${path} in the container is a link to a link: ${target.linkTarget}`);
  }

  /** null: nothing is there. */
  private readPath(id: string, path: string): Promise<PathContent | null> {
    const call = { method: 'GET', path: `/containers/${id}/archive`, query: { path } } as const;
    return unlessAbsent(this.exchange({ ...call, deadlineMs: changeDeadlineMs }, readPath));
  }

  /** Resolves when the container does not run (any longer) or is gone. */
  async waitForEnd(id: string, signal: AbortSignal): Promise<void> {
    await unlessAbsent(this.post(`/containers/${id}/wait`, { deadlineMs: null, signal }));
  }

  /** Sends a signal to the main process; nothing happens when it has ended. */
  async killContainer(id: string, signal: string): Promise<void> {
    await unlessAbsent(this.post(`/containers/${id}/kill`, { query: { signal } })).catch((error: unknown) => {
      const hasEnded = error instanceof EngineError && error.status === 409;
      if (!hasEnded) throw error;
    });
  }

  /** Ends a pause that somebody else began; nothing happens to a container that is not paused. */
  async unpauseContainer(id: string): Promise<void> {
    try {
      await unlessAbsent(this.post(`/containers/${id}/unpause`));
    } catch (error) {
      const isNotPaused = error instanceof EngineError && (error.status === 409 || error.status === 500);
      if (!isNotPaused || (await this.inspectContainer(id))?.isPaused === true) throw error;
    }
  }

  /** Deletes a container that does not run, and its anonymous volumes. Absent is fine. */
  async removeContainer(id: string): Promise<void> {
    const call = { method: 'DELETE', path: `/containers/${id}`, query: { v: '1' } } as const;
    await unlessAbsent(this.done({ ...call, deadlineMs: changeDeadlineMs }));
  }

  /** The container's own log from its first byte, as the engine frames it (frames.ts). */
  async *readLog(id: string, options: { follow: boolean; signal: AbortSignal }): AsyncGenerator<Buffer> {
    const query = { stdout: '1', stderr: '1', timestamps: '1', follow: options.follow ? '1' : '0' };
    const call = { method: 'GET', path: `/containers/${id}/logs`, query, deadlineMs: null } as const;
    yield* this.stream({ ...call, signal: options.signal });
  }

  private async identify(): Promise<EngineIdentity> {
    const call = { method: 'GET', path: '/version', deadlineMs: readDeadlineMs } as const;
    const identity = toIdentity(await exchange(this.socketPath, '', call, readJsonAnswer<VersionAnswer>));
    if (!isAtLeast(identity.apiVersion, wantedApiVersion)) {
      throw new EngineError(
        null,
        `the container engine at ${this.socketPath} (version ${identity.version}) speaks API ${identity.apiVersion} ` +
          `and Muster needs ${wantedApiVersion}: upgrade it to Docker 20.10 or newer`,
      );
    }
    return identity;
  }

  private get<T>(path: string, query: Readonly<Record<string, string>> = {}): Promise<T> {
    return this.json<T>({ method: 'GET', path, query, deadlineMs: readDeadlineMs });
  }

  private post(path: string, more: Partial<Omit<EngineCall, 'method' | 'path'>> = {}): Promise<void> {
    return this.done({ method: 'POST', path, deadlineMs: readDeadlineMs, ...more });
  }

  private async json<T>(call: EngineCall): Promise<T> {
    return this.exchange(call, readJsonAnswer<T>);
  }

  private async done(call: EngineCall): Promise<void> {
    await this.exchange(call, readTextAnswer);
  }

  private async open(call: EngineCall) {
    return this.exchange(call, async (response) => response);
  }

  private async *stream(call: EngineCall): AsyncGenerator<Buffer> {
    yield* pieces(this.socketPath, call, await this.open(call));
  }

  private async exchange<T>(call: EngineCall, read: Parameters<typeof exchange<T>>[3]): Promise<T> {
    const { apiVersionMin } = await this.identity();
    const version = isAtLeast(apiVersionMin, wantedApiVersion) ? apiVersionMin : wantedApiVersion;
    try {
      return await exchange(this.socketPath, `/v${version}`, call, read);
    } catch (error) {
      if (error instanceof EngineError && error.status === null) this.knownIdentity = null;
      throw error;
    }
  }
}

async function unlessAbsent<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof EngineError && error.status === 404) return null;
    throw error;
  }
}

interface PathContent {
  /** null: it is something else. */
  readonly file: Buffer | null;
  /** Empty: it is no link. */
  readonly linkTarget: string;
}

function pathStat({ headers }: IncomingMessage): { mode: number; linkTarget?: string } | null {
  const stat = headers['x-docker-container-path-stat'];
  return typeof stat === 'string' ? JSON.parse(Buffer.from(stat, 'base64').toString('utf8')) : null;
}

/** @throws {EngineError} for what is large */
async function readPath(response: IncomingMessage): Promise<PathContent> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > smallBytesMax) throw new EngineError(413, `a file of more than ${smallBytesMax} bytes`);
    chunks.push(chunk);
  }
  return { file: archivedFile(Buffer.concat(chunks)), linkTarget: pathStat(response)?.linkTarget ?? '' };
}

/** A pull is answered with 200 and reports its failure as a line of the answer. */
function readPullStep(line: string, onStep: (step: PullStep) => void): void {
  if (line.trim() === '') return;
  const step = JSON.parse(line) as { status?: string; id?: string; error?: string };
  if (step.error !== undefined) throw new EngineError(500, step.error);
  if (step.status !== undefined) onStep({ id: step.id ?? null, status: step.status });
}

/** Of API versions: 1.9 is older than 1.41. */
function isAtLeast(version: string, floor: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [floorMajor = 0, floorMinor = 0] = floor.split('.').map(Number);
  return major > floorMajor || (major === floorMajor && minor >= floorMinor);
}
