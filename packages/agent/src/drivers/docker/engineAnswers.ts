/** What the engine's answers mean in our words. Its own spelling (and its nulls for "none") stops here. */

export interface EngineIdentity {
  readonly product: 'docker' | 'podman';
  readonly version: string;
  readonly apiVersion: string;
  readonly apiVersionMin: string;
  /** The engine can run its small init (tini) as PID 1 of a container. */
  readonly hasInit: boolean;
}

export interface EngineInfo {
  /** Containers survive a restart of the engine. */
  readonly liveRestore: boolean;
  readonly selinux: boolean;
  /** Users of containers are others on the node (`userns-remap`, rootless). */
  readonly mapsUsers: boolean;
  /** Names of the OCI runtimes it is configured with: `runc`, `nvidia`, … */
  readonly runtimes: readonly string[];
  /** Where the engine looks for CDI specs; empty where CDI is off or unknown to it. */
  readonly cdiSpecDirs: readonly string[];
  /** Qualified CDI names (`nvidia.com/gpu=GPU-…`) that the engine found; null: it does not report them. */
  readonly cdiDevices: readonly string[] | null;
}

export interface ImageDetails {
  readonly entrypoint: readonly string[];
  /** `uid`, `uid:gid`, a name; empty: root. */
  readonly user: string;
  readonly command: readonly string[];
  /** `NAME=value` each. */
  readonly env: readonly string[];
}

export interface Container {
  readonly id: string;
  readonly labels: Readonly<Record<string, string>>;
  /** `created` has never run; a paused container is running. */
  readonly phase: 'created' | 'running' | 'ended';
  /** By the engine, which then refuses it every signal. We never do that; people may. */
  readonly isPaused: boolean;
  /** As the engine's machine counts; null unless running. */
  readonly pid: number | null;
  /** 128 + n when signal n ended the main process, or when it exited with that number itself. Meaningless until ended. */
  readonly exitCode: number;
  readonly oomKilled: boolean;
  /** PID 1 of the container is the engine's init, which forwards signals to the task. */
  readonly hasInit: boolean;
  /** Whether the engine bounds its memory, so that the kernel can end it for reaching the bound. */
  readonly hasMemoryLimit: boolean;
  /** Epoch milliseconds; null: not yet. */
  readonly startedAtMs: number | null;
  readonly finishedAtMs: number | null;
  readonly deviceRequests: readonly DeviceRequest[];
  readonly workdir: string;
  /** `NAME=value` each, the image's included. */
  readonly env: readonly string[];
}

/** Spelled as in the engine's API: it travels both ways. */
export interface DeviceRequest {
  readonly Driver: string;
  readonly DeviceIDs: readonly string[];
  readonly Capabilities?: readonly (readonly string[])[];
}

export interface VersionAnswer {
  readonly Version: string;
  readonly ApiVersion: string;
  readonly MinAPIVersion?: string;
  readonly Components?: readonly { readonly Name: string; readonly Version: string }[];
}

export function toIdentity(answer: VersionAnswer): EngineIdentity {
  const components = answer.Components ?? [];
  const init = components.find((component) => component.Name === 'docker-init');
  return {
    // Podman's version number looks like Docker's; only the list of components tells.
    product: components.some((component) => component.Name.startsWith('Podman')) ? 'podman' : 'docker',
    version: answer.Version,
    apiVersion: answer.ApiVersion,
    apiVersionMin: answer.MinAPIVersion ?? answer.ApiVersion,
    // Where the binary is missing it is listed as N/A, or not at all.
    hasInit: init !== undefined && init.Version !== '' && init.Version !== 'N/A',
  };
}

export interface InfoAnswer {
  readonly LiveRestoreEnabled?: boolean;
  readonly SecurityOptions?: readonly string[] | null;
  readonly Runtimes?: Readonly<Record<string, object>> | null;
  readonly CDISpecDirs?: readonly string[] | null;
  readonly DiscoveredDevices?: readonly { readonly Source: string; readonly ID: string }[] | null;
}

export function toInfo(answer: InfoAnswer): EngineInfo {
  const cdiDevices = answer.DiscoveredDevices?.filter((device) => device.Source === 'cdi');
  return {
    liveRestore: answer.LiveRestoreEnabled === true,
    mapsUsers: (answer.SecurityOptions ?? []).some((option) => /name=(?:userns|rootless)/.test(option)),
    selinux: (answer.SecurityOptions ?? []).some((option) => option.includes('name=selinux')),
    runtimes: Object.keys(answer.Runtimes ?? {}),
    cdiSpecDirs: answer.CDISpecDirs ?? [],
    cdiDevices: cdiDevices?.map((device) => device.ID) ?? null,
  };
}

export interface ImageAnswer {
  readonly Config?: {
    readonly Entrypoint?: readonly string[] | null;
    readonly Cmd?: readonly string[] | null;
    readonly Env?: readonly string[] | null;
    readonly User?: string | null;
  } | null;
}

export function toImage(answer: ImageAnswer): ImageDetails {
  const config = answer.Config ?? {};
  const { Entrypoint, Cmd, Env, User } = config;
  return { entrypoint: Entrypoint ?? [], command: Cmd ?? [], env: Env ?? [], user: User ?? '' };
}

export interface ContainerAnswer {
  readonly Id: string;
  readonly State: {
    readonly Status: string;
    readonly Running: boolean;
    readonly Paused?: boolean;
    readonly OOMKilled: boolean;
    readonly Pid: number;
    readonly ExitCode: number;
    readonly StartedAt: string;
    readonly FinishedAt: string;
  };
  readonly Config: {
    readonly Labels: Readonly<Record<string, string>> | null;
    readonly WorkingDir: string;
    readonly Env: readonly string[] | null;
  };
  readonly HostConfig: {
    readonly DeviceRequests?: readonly DeviceRequest[] | null;
    /** Bytes; 0 stands for no limit. */
    readonly Memory?: number;
    readonly Init?: boolean | null;
  };
}

export function toContainer(answer: ContainerAnswer): Container {
  const { State: state, Config: config } = answer;
  const phase = state.Status === 'created' ? 'created' : state.Running ? 'running' : 'ended';
  return {
    id: answer.Id,
    labels: config.Labels ?? {},
    phase,
    isPaused: state.Paused === true,
    pid: phase === 'running' && state.Pid > 0 ? state.Pid : null,
    exitCode: state.ExitCode,
    oomKilled: state.OOMKilled,
    hasInit: answer.HostConfig.Init === true,
    hasMemoryLimit: (answer.HostConfig.Memory ?? 0) > 0,
    startedAtMs: toEpochMs(state.StartedAt),
    finishedAtMs: toEpochMs(state.FinishedAt),
    deviceRequests: answer.HostConfig.DeviceRequests ?? [],
    workdir: config.WorkingDir === '' ? '/' : config.WorkingDir,
    env: config.Env ?? [],
  };
}

/** The engine writes "not yet" as the year 1. */
function toEpochMs(timestamp: string): number | null {
  const epochMs = Date.parse(timestamp);
  return epochMs > 0 ? epochMs : null;
}

/** Of the JSON in the header that answers a question about a path; the mode is Go's, not the kernel's. */
export function isExecutableFile(stat: { readonly mode: number }): boolean {
  const isDirectory = stat.mode >= 2 ** 31;
  // A link is taken at its word: the engine does not follow the last one.
  const isLink = (stat.mode & (1 << 27)) !== 0;
  return isLink || (!isDirectory && (stat.mode & 0o111) !== 0);
}

/** What the engine reports while it pulls an image. Steps of a layer carry its id; others have none, or the image's tag. */
export interface PullStep {
  readonly id: string | null;
  /** `Pulling fs layer`, `Downloading`, `Pull complete`, … */
  readonly status: string;
}
