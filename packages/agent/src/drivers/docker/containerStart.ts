/** From a launch to a running container. Whatever fails in between, no container is left behind. */

import { open } from 'node:fs/promises';
import { posix } from 'node:path';
import { untilAborted } from '@muster/common/async';
import type { Logger } from '@muster/common/log';
import { closest } from '@muster/common/spec/suggest';
import type { AccountIds } from '../../taskFacts/account.ts';
import { DriverError } from '../../taskFacts/errors.ts';
import type { Fence, TaskLaunch } from '../driver.ts';
import type { ContainerFences } from './containerFences.ts';
import { type ContainerPolicy, misnamedGroup } from './containerPolicy.ts';
import {
  argvOf,
  type ContainerIdentity,
  commandPaths,
  containerName,
  containerSpec,
  labels,
  type OutputMode,
  shell,
  survivesShell,
} from './containerSpec.ts';
import type { Engine } from './engine.ts';
import type { Container, EngineInfo, ImageDetails } from './engineAnswers.ts';
import { EngineError } from './engineHttp.ts';
import { canRequestGpus, chooseGpuRequestMode, missingGpus } from './gpuRequests.ts';
import { ensureImage } from './image.ts';
import { allowedVolumes, type MountRules } from './mounts.ts';
import { type MeantCommand, mappedUsers, misnamed, missingCommand, noGpus } from './startErrors.ts';
import { outputPath } from './taskOutputs.ts';

/**
 * What images for training have. They are asked for one by one: an engine lists a directory only by sending all that is in it.
 */
const usualPrograms = [
  'python',
  'python3',
  'torchrun',
  'accelerate',
  'deepspeed',
  'mpirun',
  'uv',
  'bash',
  'sh',
  'nvidia-smi',
];

/** For a container whose start got no answer: to see it dead before it is deleted. */
const killDeadlineMs = 10_000;

export interface ContainerStartOptions extends ContainerIdentity {
  readonly policy: ContainerPolicy;
  readonly mounts: MountRules;
  readonly accounts: Pick<Fence, 'accountIds'>;
  readonly fences: ContainerFences;
  readonly log: Logger;
}

export class ContainerStart {
  private readonly engine: Engine;
  private readonly options: ContainerStartOptions;
  private info: EngineInfo | null = null;

  constructor(engine: Engine, options: ContainerStartOptions) {
    this.engine = engine;
    this.options = options;
  }

  /**
   * What takes long or can be found missing before there is a container.
   * @throws {DriverError | EngineError}
   * @throws the reason of `abort`
   */
  async prepare(launch: TaskLaunch, onDoing: (what: string) => void, abort: AbortSignal): Promise<void> {
    // First what is quick: nobody should wait an hour for an image before a missing directory is reported.
    await untilAborted(allowedVolumes(launch, this.options.mounts), abort);
    await untilAborted(this.idsOf(launch), abort);
    if (launch.gpus.some((gpu) => !gpu.simulated)) {
      await untilAborted(this.requireGpuSupport(launch), abort);
    }
    await untilAborted(this.image(launch, abort, onDoing), abort);
  }

  /**
   * A pull is given up at once. From the creation on, the call under way is waited for: one that got no answer may have
   * its effect later, and would leave a container behind, or one that runs.
   * @param created the task's container as an earlier start left it, never run; null: there is none
   * @throws {LeaseExpired} and nothing ran
   * @throws {EngineError} 404 or 409 when somebody else deleted or made the container meanwhile
   * @throws the reason of `abort`
   */
  async run(launch: TaskLaunch, created: Container | null, abort: AbortSignal): Promise<Container> {
    const { fences } = this.options;
    let container = created;
    let mayRun = false;
    try {
      fences.requireLease(launch, launch.lease);
      const image = await untilAborted(this.image(launch, abort), abort);
      const output = await untilAborted(this.preferredOutput(launch, image), abort);
      const ids = await untilAborted(this.idsOf(launch), abort);
      if (container === null) container = await this.create(launch, image, ids, output);
      else await untilAborted(allowedVolumes(launch, this.options.mounts), abort);
      abort.throwIfAborted();
      const needsShell = container.labels[labels.output] === ('file' satisfies OutputMode);
      if (needsShell && !(await this.engine.isExecutable(container.id, shell))) {
        requireNoVariables(launch, `the image has no ${shell}`);
        await this.engine.removeContainer(container.id);
        container = await this.create(launch, image, ids, 'engine');
      }
      if (ids !== null) await this.checkGroups(launch, ids, container);
      await this.checkCommand(launch, image, container);
      checkGpus(launch, container);
      await fences.arm(launch, launch.lease, container.id);
      abort.throwIfAborted();
      fences.requireLease(launch, launch.lease);
      mayRun = true;
      await this.engine.startContainer(container.id).catch((error: unknown) => {
        // The engine has refused. Without an answer it may still start the container.
        mayRun = !(error instanceof EngineError) || error.status === null;
        throw error;
      });
      // The engine may have taken its time: what came into being too late is stopped by this, if not by the guard.
      const started = await this.inspectStarted(launch, container);
      if (started !== null) await fences.armStarted(launch, launch.lease, started);
      return started ?? container;
    } catch (error) {
      if (container !== null) await this.discard(launch, container, mayRun);
      throw error;
    }
  }

  /** Without a lease only the limits of its output need it, and the container runs well without them. */
  private inspectStarted({ lease }: TaskLaunch, { id }: Container): Promise<Container | null> {
    const started = this.engine.inspectContainer(id);
    return lease === null ? started.catch(() => null) : started;
  }

  private async image(
    launch: TaskLaunch,
    abort: AbortSignal,
    onDoing: (what: string) => void = () => {},
  ): Promise<ImageDetails> {
    if (launch.image === null) {
      throw new DriverError(
        'unknown',
        `task ${launch.key} names no image, and the Docker driver runs images only`,
      );
    }
    if (launch.gpus.some((gpu) => !gpu.simulated)) await this.refusePodman();
    const image = await ensureImage(this.engine, launch.image, { log: this.options.log, abort, onDoing });
    if (argvOf(launch, image).length > 0) return image;
    const message = `the image ${launch.image} has no command of its own: name one in the job`;
    throw new DriverError('command_not_found', message);
  }

  private async requireGpuSupport(launch: TaskLaunch): Promise<void> {
    await this.refusePodman();
    const info = await this.engine.info();
    const mode = await chooseGpuRequestMode(launch.gpus, info);
    if (mode === 'nvidia' && !canRequestGpus(info)) {
      throw noGpus('it has neither the NVIDIA runtime nor a CDI device for each GPU');
    }
  }

  private async refusePodman(): Promise<void> {
    const { product } = await this.engine.identity();
    if (product !== 'podman') return;
    throw new DriverError(
      'unknown',
      'the container engine is Podman, which ignores requests for GPUs: the task would run without them. ' +
        'Use Docker on nodes with GPUs, or run the job without an image',
    );
  }

  private async preferredOutput(launch: TaskLaunch, image: ImageDetails): Promise<OutputMode> {
    const { selinux } = await this.engineInfo();
    if (survivesShell(launch, image) && !selinux) return 'file';
    requireNoVariables(
      launch,
      selinux ? 'SELinux is on' : 'the environment has names that no shell passes on',
    );
    return 'engine';
  }

  /** null: the launch has no account. */
  private async idsOf({ account, ownFiles, directories }: TaskLaunch): Promise<AccountIds | null> {
    if (account === null) return null;
    if ((await this.engineInfo()).mapsUsers) throw mappedUsers();
    return this.options.accounts.accountIds(account, { ownFiles, directories });
  }

  /** Before the start: the container would have a group that its account is not in. */
  private async checkGroups({ image }: TaskLaunch, ids: AccountIds, { id }: Container): Promise<void> {
    const database = await this.engine.readFile(id, '/etc/group');
    const group = database === null ? null : misnamedGroup(ids.groups, database.toString('latin1'));
    if (group !== null) throw misnamed(image, group);
  }

  private async create(
    launch: TaskLaunch,
    image: ImageDetails,
    ids: AccountIds | null,
    output: OutputMode,
  ): Promise<Container> {
    const hasDevices = launch.gpus.some((gpu) => !gpu.simulated);
    const volumes = await allowedVolumes(launch, this.options.mounts);
    if (output === 'file') await makeOutputFile(launch);
    const spec = containerSpec({
      launch,
      image,
      ids,
      output,
      agentId: this.options.agentId,
      bootId: this.options.bootId,
      volumes,
      policy: this.options.policy,
      init: (await this.engine.identity()).hasInit,
      // Asked each time: CDI specs are generated again after a change of driver or of MIG slices.
      gpuMode: hasDevices ? await chooseGpuRequestMode(launch.gpus, await this.engine.info()) : 'nvidia',
    });
    const id = await this.engine.createContainer(containerName(launch.key), spec);
    const container = await this.engine.inspectContainer(id);
    if (container === null)
      throw new EngineError(404, `the container ${id} disappeared right after it was created`);
    return container;
  }

  /** Before the start: the init and the shell would start anyway and end with exit code 127. */
  private async checkCommand(launch: TaskLaunch, image: ImageDetails, container: Container): Promise<void> {
    const command = argvOf(launch, image)[0] ?? '';
    const paths = commandPaths(command, container.workdir, container.env);
    for (const path of paths) {
      if (await this.engine.isExecutable(container.id, path)) return;
    }
    throw missingCommand(command, launch, await this.nearest(command, container));
  }

  /** What was probably meant by a command that is not in a container. null: nothing that is there. */
  private async nearest(command: string, { id, workdir, env }: Container): Promise<MeantCommand | null> {
    const isThere = (path: string) => this.engine.isExecutable(id, path);
    const here = `${workdir === '/' ? '' : workdir}/${command}`;
    if (!command.includes('/') && (await isThere(here))) return { write: `./${command}`, path: here };
    const name = posix.basename(command);
    const similar = closest(
      name,
      usualPrograms.filter((each) => each !== name),
    );
    // Of a path that leads nowhere, the program of this name may be somewhere else.
    for (const each of [...(command.includes('/') ? [name] : []), ...(similar === null ? [] : [similar])]) {
      for (const path of commandPaths(each, workdir, env))
        if (await isThere(path)) return { write: each, path };
    }
    return null;
  }

  /** After a failed start. What fails here must not hide why the start did. */
  private async discard(launch: TaskLaunch, container: Container, mayRun: boolean): Promise<void> {
    try {
      if (mayRun) {
        await this.options.fences.kill(launch);
        await this.engine.killContainer(container.id, 'SIGKILL');
        await this.engine.waitForEnd(container.id, AbortSignal.timeout(killDeadlineMs));
      }
      await this.engine.removeContainer(container.id);
      await this.options.fences.forget(launch);
    } catch (error) {
      // The guard keeps holding the lease of what could not be removed.
      this.options.log.warn({ container: container.id, error: String(error) }, 'cannot delete a container');
    }
  }

  private async engineInfo(): Promise<EngineInfo> {
    if (this.info !== null) return this.info;
    this.info = await this.engine.info();
    if (!this.info.liveRestore) {
      this.options.log.warn(
        { socket: this.engine.socketPath },
        'a restart of the container engine kills its tasks: put {"live-restore": true} into /etc/docker/daemon.json ' +
          'and reload the engine (systemctl reload docker)',
      );
    }
    return this.info;
  }
}

/** Without a shell of the image in front of the command, only the engine could set them. @throws {DriverError} */
function requireNoVariables({ variablesFile }: TaskLaunch, reason: string): void {
  if (variablesFile === null) return;
  throw new DriverError(
    'unknown',
    `secrets cannot be variables in this container, because ${reason}, and the container engine would store and show them: ` +
      'use them as files (--secret NAME)',
  );
}

async function makeOutputFile(launch: TaskLaunch): Promise<void> {
  await using file = await open(outputPath(launch), 'a');
  // The container's user opens it, no matter who that is; on the node the task's directory keeps everybody else out.
  await file.chmod(0o666);
}

/** Of a container that was created and not started, so that nothing ever runs without its GPUs. */
function checkGpus(launch: TaskLaunch, container: Container): void {
  const missing = missingGpus(launch.gpus, container.deviceRequests).map((gpu) => gpu.uuid);
  if (missing.length === 0) return;
  throw new DriverError(
    'unknown',
    `the container engine dropped the request for the GPUs ${missing.join(', ')}`,
  );
}
