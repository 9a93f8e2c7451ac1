/** Looks at this machine as an agent would, and reports what it sees: every source, the one it would use, and what is missing. */
import { closeSync, existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { withDeadline } from '@muster/common/async';
import { systemClock } from '@muster/common/clock';
import { messageOf } from '@muster/common/errors';
import { findProgram } from '@muster/common/files';
import type { GpuSourceName } from '@muster/common/hardware';
import { silentLogger } from '@muster/common/log';
import { rootProblem } from '../checkpoints/place.ts';
import type {
  GpuActivity,
  GpuListing,
  GpuProblem,
  GpuSample,
  GpuSampling,
  GpuSource,
  ProfilingSource,
} from '../gpus/gpuSource.ts';
import {
  dmonSource,
  exporterSource,
  nvidiaSmiSource,
  nvmlSource,
  type OpenedSources,
  openSources,
  type SourceParts,
} from '../gpus/openSources.ts';
import type { ConditionTable } from '../health/conditionTable.ts';
import { evaluateConditions, visibleConditions } from '../health/evaluate.ts';
import { probeFileSystems } from '../health/fileSystems.ts';
import { kernelLogOnStdin, openKernelLog } from '../health/kernelLog.ts';
import { problemConditionKinds } from '../health/observed.ts';
import { loadConditionTable } from '../health/start.ts';
import { emptyHealthState, type Moment } from '../health/state.ts';
import { HostInventory } from '../host/inventory.ts';
import { readMounts } from '../host/mounts.ts';
import type { AgentOptions } from '../options.ts';
import { engineAnswers } from '../probes/engine.ts';
import type { DoctorCheck, DoctorReport } from './doctorReport.ts';
import { examineLimits, readLimitFacts } from './limits.ts';

/** Of each source. A driver that must first initialise its cards takes seconds. */
const deadlineMs = 20_000;
const closeMs = 2_000;

export async function examineNode(options: AgentOptions): Promise<DoctorReport> {
  let listing: GpuListing | null = null;
  const parts: SourceParts = {
    log: silentLogger,
    clock: systemClock,
    searchPath: process.env['PATH'] ?? '/usr/bin:/bin',
    libraryPath: process.env['LD_LIBRARY_PATH'] ?? null,
    busyGpus: () => new Set(),
    listedGpus: () => listing?.gpus ?? [],
  };
  const chosen = await openSources(options, parts);
  const table = await loadConditionTable(options.conditionTable).catch(() => loadConditionTable(null));
  const gpus = await examineSource(chosen.source, { table }, (listed) => {
    listing = listed;
  });
  const others = await examineOtherSources(options, parts, chosen);
  const profiling = await examineProfiling(options, parts, chosen);
  await withDeadline(Promise.all([chosen.source.close(), chosen.profiling?.close()]), closeMs);
  return {
    checks: [
      ...gpus,
      ...others,
      ...profiling,
      await examineDocker(options),
      examineLimits(readLimitFacts()),
      examineKernelLog(options.kernelLog),
      await examineTable(options.conditionTable),
      ...(await examineDisk(options.dataDir)),
      ...(await examineRoots(options.checkpointRoots)),
      ...(await examineNetwork()),
    ],
  };
}

type About = Pick<DoctorCheck, 'area' | 'name' | 'chosen'>;

/** @param more evidence and remedy; default: none */
function check(
  about: About,
  state: DoctorCheck['state'],
  message: string,
  more: Partial<Pick<DoctorCheck, 'evidence' | 'remedy'>> = {},
): DoctorCheck {
  return { ...about, state, message, evidence: null, remedy: null, ...more };
}

/**
 * @param agent what the agent judges its readings by; null: it would not use this source
 * @param onListing takes the devices, for sources that need to know them
 */
async function examineSource(
  source: GpuSource,
  agent: { readonly table: ConditionTable } | null,
  onListing: (listing: GpuListing) => void = () => {},
): Promise<readonly DoctorCheck[]> {
  const chosen = agent !== null;
  const about = { area: 'GPU source', name: source.name, chosen } as const;
  if (source.name === 'none') {
    const message = 'found neither NVML nor nvidia-smi; this node offers no GPUs';
    const remedy = 'For a node with GPUs: install the NVIDIA driver.';
    return [check(about, 'absent', message, { remedy })];
  }
  try {
    const listing = await withDeadline(source.list(), deadlineMs);
    if (listing === 'late') return [hung(about)];
    onListing(listing);
    const sampling = await withDeadline(source.sample(), deadlineMs);
    if (sampling === 'late') return [hung(about)];
    const message = `${summaryOf(listing)}${source.name === 'simulated' ? '; not real hardware' : ''}`;
    const evidence = missingValues(sampling.samples);
    const problems = dedupe([...listing.problems, ...sampling.problems]);
    const state = problems.length > 0 ? 'warning' : 'ok';
    return [
      check(about, state, message, { evidence }),
      ...problems.map((each) => check(about, 'problem', each.message, { evidence: each.evidence })),
      ...(agent === null
        ? []
        : examineGpuHealth(about, { source: source.name, listing, sampling }, agent.table)),
    ];
  } catch (error) {
    const message = messageOf(error);
    if (!chosen) return [check(about, 'absent', message)];
    const remedy =
      'The agent finds no GPUs: fix this, or omit `--gpu-source` to let it choose another source.';
    return [check(about, 'problem', message, { remedy })];
  }
}

function hung(about: About): DoctorCheck {
  const remedy = 'Look at the kernel log; a driver that hangs needs a reboot of the node.';
  return check(about, 'problem', `no answer within ${deadlineMs / 1000} s`, { remedy });
}

function summaryOf({ gpus, driverVersion, cudaVersion, links }: GpuListing): string {
  const models = [...new Set(gpus.map(({ model }) => model))].join(', ');
  const what =
    gpus.length === 0 ? 'no GPUs' : `${gpus.length} ${gpus.length === 1 ? 'GPU' : 'GPUs'} (${models})`;
  const driver = driverVersion === null ? [] : [`driver ${driverVersion}`];
  const cuda = cudaVersion === null ? [] : [`CUDA ${cudaVersion}`];
  const linked = links.length === 0 ? [] : [`${links.length} ${links.length === 1 ? 'link' : 'links'}`];
  return [what, ...driver, ...cuda, ...linked].join(', ');
}

/** Which values no GPU reports; that is no fault, but who looks for them should know. */
function missingValues(samples: readonly GpuSample[]): string | null {
  const [first] = samples;
  if (first === undefined) return null;
  const missing = (Object.keys(first) as (keyof GpuSample)[]).filter((field) =>
    samples.every((sample) => sample[field] === null),
  );
  return missing.length === 0 ? null : `not reported by any GPU: ${missing.join(', ')}`;
}

function dedupe(problems: readonly GpuProblem[]): readonly GpuProblem[] {
  return [
    ...new Map(problems.map((each) => [`${each.kind} ${each.gpuUuid} ${each.pciBusId}`, each])).values(),
  ];
}

async function examineOtherSources(
  options: AgentOptions,
  parts: SourceParts,
  { source: { name: chosen } }: OpenedSources,
): Promise<readonly DoctorCheck[]> {
  if (chosen === 'simulated') return [];
  const checks: DoctorCheck[] = [];
  if (chosen !== 'nvml') {
    const nvml = nvmlSource(options, parts, true);
    checks.push(...(await examineSource(nvml, null)));
    await withDeadline(nvml.close(), closeMs);
  }
  if (chosen !== 'nvidia-smi') {
    const about = { area: 'GPU source', name: 'nvidia-smi', chosen: false } as const;
    if (findProgram(options.nvidiaSmiPath, parts.searchPath) === null) {
      const message = `${options.nvidiaSmiPath} was not found`;
      checks.push(check(about, 'absent', message));
    } else {
      const smi = nvidiaSmiSource(options, parts);
      checks.push(...(await examineSource(smi, null)));
      await withDeadline(smi.close(), closeMs);
    }
  }
  return checks;
}

async function examineProfiling(
  options: AgentOptions,
  parts: SourceParts,
  chosen: OpenedSources,
): Promise<readonly DoctorCheck[]> {
  if (chosen.source.name === 'simulated') return [];
  const candidates: ProfilingSource[] = [];
  const open = chosen.profiling;
  candidates.push(open?.name === 'dcgm-exporter' ? open : exporterSource(options, parts));
  const hasDcgmi = findProgram(options.dcgmiPath, parts.searchPath) !== null;
  if (hasDcgmi) candidates.push(open?.name === 'dcgmi' ? open : dmonSource(options, parts));
  const checks: DoctorCheck[] = [];
  for (const candidate of candidates) {
    checks.push(await examineProfilingSource(candidate, candidate === open));
    if (candidate !== open) await withDeadline(candidate.close(), closeMs);
  }
  const notFound = { area: 'profiling', name: 'dcgmi', chosen: false };
  if (!hasDcgmi) checks.push(check(notFound, 'absent', `${options.dcgmiPath} was not found`));
  const hasGpm = chosen.profilingName() === 'gpm';
  const message = hasGpm
    ? 'SM, tensor and DRAM activity come from NVML itself'
    : 'not used: the GPUs are older than Hopper, NVML is not used, or another source is';
  checks.push(check({ area: 'profiling', name: 'gpm', chosen: hasGpm }, hasGpm ? 'ok' : 'absent', message));
  return checks;
}

async function examineProfilingSource(source: ProfilingSource, chosen: boolean): Promise<DoctorCheck> {
  const about = { area: 'profiling', name: source.name, chosen } as const;
  try {
    const activities = await withDeadline(source.sample(), deadlineMs);
    if (activities === 'late') return hung(about);
    const known = new Set([...activities.values()].flatMap(knownValues));
    const message = `${activities.size} GPUs: ${[...known].join(', ') || 'no values'}`;
    return check(about, known.size === 0 ? 'warning' : 'ok', message);
  } catch (error) {
    return check(about, 'absent', messageOf(error));
  }
}

function knownValues(activity: GpuActivity): readonly string[] {
  return Object.entries(activity).flatMap(([name, value]) => (value === null ? [] : [name]));
}

async function examineDocker({ dockerSocket }: AgentOptions): Promise<DoctorCheck> {
  const about = { area: 'containers', name: 'Docker', chosen: false };
  if (await engineAnswers(dockerSocket)) return check(about, 'ok', `the engine answers at ${dockerSocket}`);
  const state = existsSync(dockerSocket) ? 'warning' : 'absent';
  const message = `no engine answers at ${dockerSocket}; jobs with an image do not run here`;
  const remedy = 'Start Docker, and let the user of the agent use its socket.';
  return check(about, state, message, { remedy });
}

function examineKernelLog(path: string): DoctorCheck {
  const about = { area: 'health', name: path, chosen: false };
  try {
    // Opened, because what forbids it (dmesg_restrict, a container) does not show in the permissions of the file.
    const file = openKernelLog(path);
    if (path !== kernelLogOnStdin) closeSync(file);
    return check(about, 'ok', 'Xids are read from it');
  } catch (error) {
    const message =
      'it cannot be read: Xids of GPUs that fell off the bus, and those of NVSwitches, go unnoticed';
    const remedy = 'Run the agent as root, or give it CAP_SYSLOG.';
    return check(about, 'warning', message, { evidence: messageOf(error), remedy });
  }
}

async function examineTable(path: string | null): Promise<DoctorCheck> {
  const about = { area: 'health', name: path ?? 'table of conditions', chosen: false } as const;
  try {
    await loadConditionTable(path);
    return check(about, 'ok', path === null ? 'built-in' : 'the table of conditions is valid');
  } catch (error) {
    return check(about, 'problem', messageOf(error));
  }
}

async function examineDisk(dataDir: string): Promise<readonly DoctorCheck[]> {
  const facts = await probeFileSystems({ dataDir: existingPartOf(dataDir), paths: [], deadlineMs });
  return facts.map(({ path, failure, readOnly, space }) => {
    const about = { area: 'health', name: path, chosen: false };
    if (typeof failure === 'string') {
      const remedy = 'See the kernel log, and whoever serves this file system.';
      return check(about, 'problem', failure, { remedy });
    }
    if (readOnly === true) {
      const remedy = 'See the kernel log: a disk that fails is often mounted read-only.';
      return check(about, 'problem', 'its file system is read-only', { remedy });
    }
    const free = space === null ? '' : `, ${Math.floor(space.availableBytes / 1024 ** 3)} GiB free`;
    return check(about, 'ok', `its file system can be written to${free}`);
  });
}

async function examineRoots(roots: readonly string[]): Promise<readonly DoctorCheck[]> {
  return Promise.all(
    roots.map(async (root): Promise<DoctorCheck> => {
      const about = { area: 'checkpoints', name: root, chosen: false };
      const problem = await withDeadline(
        rootProblem(root, () => readMounts()),
        deadlineMs,
      );
      if (problem === null) return check(about, 'ok', 'it can be written to');
      const message = problem === 'late' ? `no answer within ${deadlineMs / 1000} s` : `it ${problem}`;
      return check(about, 'problem', message);
    }),
  );
}

/** The agent makes its directory when it starts for the first time. */
function existingPartOf(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : existingPartOf(dirname(path));
}

async function examineNetwork(): Promise<readonly DoctorCheck[]> {
  const { nics, rdmaDevices } = await new HostInventory({ monotonicMs: systemClock.monotonicMs }).read();
  const up = nics.filter(({ state, isVirtual }) => state !== 'down' && !isVirtual);
  const names = up.map(({ name, speedMbps }) =>
    speedMbps === null ? name : `${name} (${speedMbps / 1000} Gbit/s)`,
  );
  const interfaces = { area: 'network', name: 'interfaces', chosen: false };
  const checks =
    up.length === 0
      ? [check(interfaces, 'warning', 'no hardware interface is up')]
      : [check(interfaces, 'ok', names.join(', '))];
  if (rdmaDevices.length === 0) return checks;
  const idle = rdmaDevices.filter(({ state }) => state !== 'ACTIVE');
  const message = `${rdmaDevices.length - idle.length} of ${rdmaDevices.length} ports are active`;
  const evidence = idle.length === 0 ? null : idle.map(({ name, state }) => `${name} ${state}`).join(', ');
  const rdma = { area: 'network', name: 'RDMA', chosen: false };
  return [...checks, check(rdma, idle.length === 0 ? 'ok' : 'warning', message, { evidence })];
}

/**
 * Applies the rules of the agent. Problems of the source are excluded, because they are reported separately, and so are
 * conditions that show only over time.
 */
function examineGpuHealth(
  about: About,
  seen: { readonly source: GpuSourceName; readonly listing: GpuListing; readonly sampling: GpuSampling },
  table: ConditionTable,
): readonly DoctorCheck[] {
  const { source, listing, sampling } = seen;
  const now: Moment = { wallMs: systemClock.wallMs(), uptimeMs: systemClock.monotonicMs() };
  const observation = {
    gpus: listing.gpus,
    gpuDriver: { source, profilingSource: null, driverVersion: null, cudaVersion: null },
    samples: new Map(sampling.samples.map((sample) => [sample.uuid, sample])),
    problems: [...listing.problems, ...sampling.problems],
    holders: new Map(),
    atMs: now.wallMs,
  };
  const state = evaluateConditions(
    emptyHealthState('doctor'),
    { kind: 'observation' },
    { table, observation, now },
  );
  return visibleConditions(state)
    .filter(({ kind }) => !problemConditionKinds.has(kind))
    .map(({ severity, message, evidence }) =>
      check(about, severity === 'critical' ? 'problem' : 'warning', message, { evidence }),
    );
}
