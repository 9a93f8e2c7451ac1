/** From an assignment to a launch: everything a driver needs, chosen here and nowhere else. */

import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { namedCheckpointDir } from '@muster/common/spec/checkpointDir';
import type { JobSpec } from '@muster/common/spec/types';
import type { GpuDevice, TaskLaunch } from '../drivers/driver.ts';
import { errorFileName } from '../failure/taskFailure.ts';
import type { NodeNetwork } from '../host/addresses.ts';
import { type AccountPolicy, accountOf } from '../launch/account.ts';
import { artifactPlaces, artifactVolumes, outputDirectories } from '../launch/artifactPlaces.ts';
import type { CheckpointDirs } from '../launch/checkpointDir.ts';
import { processesPerNode, taskEnvironment } from '../launch/environment.ts';
import { hostfilesOf, hostfileTexts } from '../launch/hostfile.ts';
import { launchCommand } from '../launch/launcher.ts';
import { networkEnvironment } from '../launch/networkEnvironment.ts';
import { fillPlaceholders, fillVariables } from '../launch/placeholders.ts';
import type { TaskSecrets } from '../secrets/taskSecrets.ts';
import { ownDirectory, type TaskAccount } from '../taskFacts/account.ts';
import type { Assignment } from '../taskFacts/assignment.ts';
import type { Lease, TaskLocation } from '../taskFacts/execution.ts';

/** What is the same for every task of this node. */
export interface NodeFacts {
  readonly gpusAreSimulated: boolean;
  /** As it was last read. */
  readonly network: () => NodeNetwork;
  readonly containers: {
    /** Of those without peers on other nodes. */
    readonly network: TaskLaunch['network'];
    /** They run as the account of their job, where bare tasks do. */
    readonly haveAccounts: boolean;
  };
  readonly secrets: Pick<TaskSecrets, 'provided'>;
  /** PATH, HOME and the like for bare processes. */
  readonly baseEnvironment: Readonly<Record<string, string>>;
  /** The accounts that tasks run as. */
  readonly accounts: AccountPolicy;
}

/** Leave to start: where the rendezvous takes place, and how long the task may run. */
export interface TaskRelease {
  readonly addr: string;
  readonly port: number;
  /** Of every node of the gang, by node rank. Empty: the coordinator did not send them. */
  readonly addresses: readonly string[];
  /** null: never fenced */
  readonly lease: Lease | null;
}

/** As the job sees them. */
interface LaunchCheckpoints {
  /** null: it has none. */
  readonly directory: string | null;
  /** Absolute. null: it begins from nothing. */
  readonly resumeFrom: string | null;
}

/** The launch of a task on its node, with the checkpoints that its job has there. @throws as `buildLaunch` does */
export function launchOf(
  node: NodeFacts,
  dirs: Pick<CheckpointDirs, 'pathFor' | 'pathOf'>,
  { location, assignment }: { readonly location: TaskLocation; readonly assignment: Assignment },
  release: TaskRelease | null,
): TaskLaunch {
  const { checkpointJobId, resume, spec } = assignment;
  const saved = {
    directory: dirs.pathFor(checkpointJobId, spec),
    resumeFrom: resume === null ? null : dirs.pathOf(checkpointJobId, spec, resume.name),
  };
  return buildLaunch(node, location, assignment, saved, release);
}

/**
 * @param release null: it is only being prepared, or its paths measured; where the rendezvous will be is not known yet
 * @throws {DriverError} when the job's launcher cannot start its command, or this node runs no task of the job's user
 */
export function buildLaunch(
  node: NodeFacts,
  location: TaskLocation,
  assignment: Assignment,
  { directory: checkpointDir, resumeFrom }: LaunchCheckpoints,
  release: TaskRelease | null,
): TaskLaunch {
  const { task, nodeCount, spec } = assignment;
  const gpus: GpuDevice[] = assignment.gpuUuids.map((uuid) => ({
    uuid,
    simulated: node.gpusAreSimulated,
  }));
  const inContainer = spec.image !== null;
  const hasAccount = !inContainer || node.containers.haveAccounts;
  const account = hasAccount
    ? accountOf(node.accounts, { user: assignment.user, project: spec.project })
    : null;
  const { batchScale, lrScale } = assignment;
  const resume = resumeFrom === null ? null : { path: resumeFrom, step: assignment.resume?.step ?? null };
  const artifacts = artifactsOf(location, spec);
  const filled = fillPlaceholders(spec, { resumeFrom, batchScale, lrScale, artifacts: artifacts.seen });
  const network = networkOf(node, spec, nodeCount);
  const seen = seenIn(network, release);
  const addresses = nodeCount === 1 ? addressesOf(seen) : (seen?.addresses ?? []);
  const hostfiles = spec.launcher === 'mpi-hostfile' ? hostfilesOf(location.directory, inContainer) : null;
  const isOwn = spec.checkpoint.dir === null;
  const ownPath = account === null ? location.directory : ownDirectory(location.directory);
  const environment = taskEnvironment({
    task,
    spec: { ...spec, env: fillVariables(spec.env, artifacts.seen) },
    nodeCount,
    gpus,
    array: assignment.array,
    master: seen,
    addresses,
    network: networkEnvironment(
      node.network(),
      network === 'bridge' ? null : (addresses[task.nodeRank] ?? null),
      spec.network,
    ),
    checkpointDir,
    resume,
    batchScale,
    lrScale,
    traceparent: assignment.traceparent ?? null,
    // A container cannot write into the task's directory, and must not: what it puts there the agent would read.
    ownDirectory: inContainer ? null : { path: ownPath, errorFile: errorFileName },
    hostfiles: hostfiles?.seen ?? null,
    base: inContainer ? {} : baseOf(node, account),
  });
  const secrets = secretsOf(node, location, spec);
  return {
    ...location,
    image: spec.image,
    command: launchCommand({ ...spec, ...filled }, task.nodeRank, processesPerNode(gpus)),
    env: { ...environment, ...secrets.environment },
    workdir: spec.workdir,
    account,
    umask: spec.umask,
    gpus,
    cpus: spec.resources.cpus,
    memoryMb: spec.resources.memoryMb,
    shmMb: spec.resources.shmMb,
    directories: checkpointsToMake(spec, account),
    ownDirectories:
      account === null || inContainer
        ? []
        : [
            ...(checkpointDir === null || !isOwn ? [] : [checkpointDir]),
            ...secrets.directories,
            ...artifacts.directories,
          ],
    variablesFile: inContainer ? secrets.script : null,
    ownFiles: account === null ? [] : secrets.files,
    volumes: spec.volumes,
    ownVolumes: inContainer
      ? [...(hostfiles === null ? [] : [hostfiles.volume]), ...secrets.volumes, ...artifacts.volumes]
      : [],
    network,
    lease: release?.lease ?? null,
  };
}

/** What a launch needs for the files that the agent has fetched, and for those that it will keep. */
function artifactsOf({ directory }: TaskLocation, { artifacts, image }: JobSpec) {
  if (artifacts === null) return { seen: null, directories: [], volumes: [] };
  const places = artifactPlaces(directory, image !== null);
  return {
    seen: places.seen,
    directories: [places.inputs, ...outputDirectories(places, artifacts)],
    volumes: artifactVolumes(places),
  };
}

/** On the node. Its own directory is there already; what a container without an account sees of its volumes is its user's to write. */
function checkpointsToMake(spec: JobSpec, account: TaskAccount | null): readonly string[] {
  if (spec.image !== null && account === null) return [];
  const directory = namedCheckpointDir(spec);
  return directory === null ? [] : [directory];
}

const secretsInContainer = '/.muster/secrets';

/** Variables, and where the files are. A container gets its variables from a script: its engine shows and stores what it gets. */
function secretsOf({ secrets }: NodeFacts, { key }: TaskLocation, spec: JobSpec) {
  const none = { environment: {}, volumes: [], directories: [], files: [], script: null };
  if (spec.secrets.length === 0) return none;
  const { directory, variables: all, script } = secrets.provided(key, spec.secrets);
  const variables = spec.image === null ? all : {};
  const scripts = spec.image === null || script === null ? [] : [script];
  if (directory === null) return { ...none, environment: variables, files: scripts, script };
  const seen = spec.image === null ? directory : secretsInContainer;
  const volume = { source: directory, target: secretsInContainer, readOnly: true };
  return {
    environment: { MUSTER_SECRETS_DIR: seen, ...variables },
    volumes: [volume],
    directories: [dirname(directory)],
    files: [
      ...spec.secrets.filter(({ variable }) => variable === null).map(({ name }) => join(directory, name)),
      ...scripts,
    ],
    script,
  };
}

/**
 * Writes what a launch counts on in the task's directory: before it is prepared, so that all of it is there, and again
 * when the addresses are known. Nothing for most jobs.
 */
export async function writeLaunchFiles(
  node: NodeFacts,
  location: TaskLocation,
  assignment: Assignment,
  release: TaskRelease | null,
): Promise<void> {
  const { spec } = assignment;
  if (spec.launcher !== 'mpi-hostfile') return;
  const { volume, written } = hostfilesOf(location.directory, spec.image !== null);
  const seen = seenIn(networkOf(node, spec, assignment.nodeCount), release);
  const texts = hostfileTexts(addressesOf(seen), Math.max(1, assignment.gpuUuids.length));
  await mkdir(volume.source, { recursive: true });
  await writeFile(written.slots, texts.slots);
  await writeFile(written.machines, texts.machines);
  // Whatever the umask of the agent is: the account of the task reads them.
  await chmod(volume.source, 0o755);
  for (const path of [written.slots, written.machines]) await chmod(path, 0o644);
}

/** The agent's login is nobody else's: the guard adds what the account's login has. */
function baseOf(
  { baseEnvironment }: NodeFacts,
  account: TaskAccount | null,
): Readonly<Record<string, string>> {
  if (account === null) return baseEnvironment;
  return Object.fromEntries(Object.entries(baseEnvironment).filter(([name]) => !loginNames.has(name)));
}

const loginNames: ReadonlySet<string> = new Set(['HOME', 'USER', 'LOGNAME', 'SHELL', 'TMPDIR']);

function networkOf({ containers }: NodeFacts, { image }: JobSpec, nodeCount: number) {
  return nodeCount === 1 && image !== null ? containers.network : 'host';
}

/** In a network of its own nobody answers at the node's address; the ranks of a gang of one are all in it. */
function seenIn(network: TaskLaunch['network'], release: TaskRelease | null): TaskRelease | null {
  if (release === null || network === 'host') return release;
  return { ...release, addr: '127.0.0.1', addresses: [] };
}

/** A gang of one has one address, that of its rendezvous. */
function addressesOf(release: TaskRelease | null): readonly string[] {
  if (release === null) return [];
  return release.addresses.length > 0 ? release.addresses : [release.addr];
}
