/**
 * The artifacts of a task in a store: inputs are on its node before it starts, and outputs are in the store before it counts
 * as ended well. A later agent may repeat both. The key of the store stays in memory, and is requested again each time.
 */
import { execFile } from 'node:child_process';
import { chmod, lstat, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Directory, withDirectory } from '@muster/checkpoints/directories';
import { MusterError, messageOf } from '@muster/common/errors';
import { type TaskKey, type TaskRef, taskKey } from '@muster/common/ids';
import type { Logger } from '@muster/common/log';
import { type ArtifactsSpec, outputUrl } from '@muster/common/spec/artifactFields';
import type { CauseKind } from '@muster/common/spec/causes';
import type { StoredArtifact, TaskEnd } from '@muster/common/views';
import { ArtifactProblem } from '../artifacts/artifactProblem.ts';
import { downloadInput } from '../artifacts/download.ts';
import { Patience } from '../artifacts/patience.ts';
import { ArtifactStoreError, objectPlaceOf, openArtifactStore, storeKeyOf } from '../artifacts/store.ts';
import { aboutArtifact, type TransferParts, uploadOutput } from '../artifacts/upload.ts';
import { artifactPlaces, outputDirectories } from '../launch/artifactPlaces.ts';
import type { SecretValue } from '../secrets/taskSecrets.ts';
import { removeTree } from '../taskFacts/removal.ts';
import type { AssignedTask, ExitOfTask, TaskContext, TaskHook } from './hooks.ts';
import { kindOfFileError, NotReady } from './notReady.ts';
import { finalCodes } from './secretHook.ts';

export interface ArtifactHookParts {
  /** Asks the coordinator for the values. @throws {MusterError} */
  readonly readSecrets: (task: TaskRef) => Promise<readonly SecretValue[]>;
  readonly bootId: string;
  /** CLOCK_BOOTTIME. */
  readonly boottimeMs: () => number;
  /** A transfer is given up after this time without a success. Default: 2 min for inputs, 10 min for outputs. */
  readonly artifactLimits?: { readonly inputsMs: number; readonly outputsMs: number };
  readonly log: Logger;
}

const defaultLimits = { inputsMs: 120_000, outputsMs: 600_000 } as const;
/** Until the coordinator is asked again for the key of a store. */
const askAgainMs = 2_000;
const messageLengthMax = 500;

/** How a transfer is followed and ended. */
interface Attended {
  readonly onDoing: (text: string) => void;
  readonly abort: AbortSignal;
}

interface TaskArtifacts extends TaskContext {
  readonly artifacts: ArtifactsSpec;
}

export function artifactHook(parts: ArtifactHookParts): TaskHook {
  const { artifactLimits: limits = defaultLimits } = parts;
  const closing = new AbortController();
  /** Of tasks whose outputs are on their way. */
  const uploads = new Map<TaskKey, AbortController>();

  const withStore = async <T>(
    { task, artifacts }: TaskArtifacts,
    limitMs: number,
    { onDoing, abort }: Attended,
    use: (transfer: TransferParts) => Promise<T>,
  ): Promise<T> => {
    const values = await parts.readSecrets(task);
    const value = values.find(({ name }) => name === artifacts.secret)?.value;
    if (value === undefined) throw new Error(`the coordinator has not sent the secret ${artifacts.secret}`);
    const store = await openArtifactStore(artifacts, storeKeyOf(value, artifacts));
    try {
      const onFailed = (message: string) => onDoing(`retrying: ${message}`);
      return await use({ store, patience: new Patience(limitMs, () => performance.now(), onFailed), abort });
    } finally {
      store.close();
    }
  };

  const fetchInputs = async (task: TaskArtifacts, attended: Attended) => {
    const { location, artifacts } = task;
    const places = artifactPlaces(location.directory, isContainer(task));
    const donePath = join(places.root, 'fetched');
    await makeDirectory(places.root, 0o755);
    // A container is any user, and nobody else gets into the directory of its task. Of processes the start makes them the account's.
    for (const each of outputDirectories(places, artifacts))
      await makeDirectory(each, isContainer(task) ? 0o777 : 0o700);
    // What was written before the machine lost its power may not be there.
    if ((await readFile(donePath, 'utf8').catch(() => null)) === parts.bootId) return;
    await removeWritten(places.inputs);
    await makeDirectory(places.inputs, 0o755);
    if (artifacts.inputs.length > 0)
      await withStore(task, limits.inputsMs, attended, async (transfer) => {
        for (const input of artifacts.inputs) {
          attended.onDoing(`fetches input ${input.name} from ${input.url}`);
          await downloadInput(transfer, places.inputs, input).catch((error: unknown) => {
            throw aboutArtifact(`input ${input.name}`, error);
          });
        }
      });
    if (!isContainer(task)) await makeReadOnly(places.inputs);
    await writeFile(donePath, parts.bootId);
  };

  const keepOutputs = async (task: TaskArtifacts, attended: Attended): Promise<readonly StoredArtifact[]> => {
    const { artifacts, location } = task;
    const { outputs: place } = artifactPlaces(location.directory, isContainer(task));
    return withStore(task, limits.outputsMs, attended, (transfer) =>
      Directory.open(place).then((directory) =>
        withDirectory(directory, async (base) => {
          const kept: StoredArtifact[] = [];
          for (const output of artifacts.outputs) {
            const url = outputUrl(artifacts, task.task.jobId, task.task.attempt, output.path);
            const { key } = objectPlaceOf(url);
            attended.onDoing(`keeps output ${output.name} at ${url}`);
            const stored = await uploadOutput(transfer, base, output, key).catch((error: unknown) => {
              throw aboutArtifact(`output ${output.name}`, error);
            });
            kept.push(stored);
          }
          return kept;
        }),
      ),
    );
  };

  const concluded = async (task: TaskArtifacts, onDoing: Attended['onDoing']): Promise<Partial<TaskEnd>> => {
    const key = taskKey(task.task);
    const given = new AbortController();
    uploads.set(key, given);
    const abort = AbortSignal.any([given.signal, closing.signal]);
    try {
      for (;;) {
        try {
          return { artifacts: await keepOutputs(task, { onDoing, abort }) };
        } catch (error) {
          closing.signal.throwIfAborted();
          const kind = given.signal.aborted ? 'artifact_store' : endKindOf(error);
          if (kind === null) {
            // The coordinator is away. The end could not be reported either.
            parts.log.warn({ task: key, error: messageOf(error) }, 'outputs cannot be kept yet');
            onDoing(`retrying: ${messageOf(error)}`);
            await delay(askAgainMs, undefined, { signal: abort }).catch(() => {});
            continue;
          }
          const message = (given.signal.aborted ? 'it was stopped meanwhile' : messageOf(error)).slice(
            0,
            messageLengthMax,
          );
          const nothingElse = {
            consequence: given.signal.aborted,
            rank: null,
            blame: null,
            line: null,
          } as const;
          const atBoottimeMs = parts.boottimeMs();
          return { failure: { source: 'artifacts', kind, message, atBoottimeMs, ...nothingElse } };
        }
      }
    } finally {
      uploads.delete(key);
    }
  };

  return {
    async prepare(task, onDoing, abort) {
      const own = withArtifacts(task);
      if (own === null) return;
      try {
        await fetchInputs(own, { onDoing, abort: AbortSignal.any([abort, closing.signal]) });
      } catch (error) {
        abort.throwIfAborted();
        const kind = finalKindOf(error) ?? finalFileKindOf(error);
        throw kind === null ? error : new NotReady(kind, messageOf(error), { cause: error });
      }
    },
    // The program has ended with 0, and nobody had asked it to stop before: its outputs are what it was started for.
    conclude: async (task, end, onDoing) => {
      const own = withArtifacts(task);
      return own === null || !hasOutputs(own, end) ? {} : concluded(own, onDoing);
    },
    hurried({ task }, graceMs) {
      const given = uploads.get(taskKey(task));
      // The agent does not wait for it.
      if (given !== undefined) setTimeout(() => given.abort(), graceMs).unref();
    },
    async removed(task) {
      const own = withArtifacts(task);
      if (own !== null) await removeWritten(artifactPlaces(own.location.directory, false).root);
    },
    async closed() {
      closing.abort(new Error('the agent is closing'));
    },
  };
}

function withArtifacts(task: AssignedTask | TaskContext): TaskArtifacts | null {
  const artifacts = task.assignment?.spec.artifacts ?? null;
  return artifacts === null ? null : { ...task, artifacts };
}

function isContainer({ assignment }: TaskContext): boolean {
  return assignment !== null && assignment.spec.image !== null;
}

/** Rank 0 has them. */
function hasOutputs({ artifacts, task }: TaskArtifacts, { exit, isStopping }: ExitOfTask): boolean {
  return task.nodeRank === 0 && artifacts.outputs.length > 0 && exit?.exitCode === 0 && !isStopping;
}

/** Of an upload. null: the coordinator is away. What else goes wrong is about the files. */
function endKindOf(error: unknown): CauseKind | null {
  return finalKindOf(error) ?? (error instanceof MusterError ? null : 'artifact_invalid');
}

/** null: a repetition may help. */
function finalKindOf(error: unknown): CauseKind | null {
  if (error instanceof ArtifactProblem) return 'artifact_invalid';
  if (error instanceof ArtifactStoreError)
    return error.kind === 'unreachable' ? 'artifact_store' : 'artifact_refused';
  return error instanceof MusterError && finalCodes.has(error.code) ? 'artifact_refused' : null;
}

function finalFileKindOf(error: unknown): CauseKind | null {
  const kind = kindOfFileError(error);
  return kind === 'unknown' ? null : kind;
}

async function makeDirectory(path: string, mode: number): Promise<void> {
  await mkdir(path, { recursive: true });
  // Whatever the umask of the agent is: the account of the task passes through. What an account has got already stays as it is.
  if ((await lstat(path)).uid === process.geteuid?.()) await chmod(path, mode);
}

/** A program that runs as the agent could change files by mistake, and its inputs would not be what the run has recorded. */
async function makeReadOnly(path: string): Promise<void> {
  await promisify(execFile)('chmod', ['-R', 'a-w', '--', path]);
  await chmod(path, 0o500);
}

/** Also what nobody may write to. @throws {Error} when something is left */
async function removeWritten(path: string): Promise<void> {
  await promisify(execFile)('chmod', ['-R', 'u+w', '--', path]).catch(() => {});
  await removeTree(path);
}
