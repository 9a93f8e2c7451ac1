/**
 * A program that plays nvidia-smi from a JSON file, which a test may change while it runs: it answers `-q -x`,
 * `--query-gpu`, `--help-query-gpu`, `--query-compute-apps`, `topo -m` and `-L`, with `-i` where the real one takes it.
 * This file is both the writer and the program itself.
 */
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export interface FakeNvidiaSmi {
  readonly driverVersion: string;
  readonly cudaVersion: string;
  readonly gpus: readonly FakeGpu[];
  /** `NV18`, `SYS` …: between any two GPUs. */
  readonly linkKind: string;
  /** Each with PXB to every GPU. */
  readonly nics: readonly string[];
  /** Printed in place of every answer. */
  readonly failure: { readonly text: string; readonly status: number } | null;
  /** Before any answer; a large number plays a driver that hangs. */
  readonly delayMs: number;
}

export interface FakeGpu {
  readonly uuid: string;
  readonly name: string;
  readonly pciBusId: string;
  readonly state:
    | 'ok'
    /** Values are replaced by `GPU is lost`. */
    | 'lost'
    | 'reset_required'
    /** Fails every call that touches it. */
    | 'dead'
    /** The driver does not know it any longer. */
    | 'gone';
  /** What `--query-gpu` prints, by field, in place of or beyond the usual values. */
  readonly values: Readonly<Record<string, string>>;
  readonly processes: readonly { readonly pid: number; readonly memoryMb: number }[];
  /** null: MIG is off. */
  readonly mig: readonly FakeMigInstance[] | null;
}

export interface FakeMigInstance {
  readonly uuid: string;
  readonly profile: string;
  readonly gpuInstanceId: number;
  readonly memoryTotalMb: number;
  readonly memoryUsedMb: number;
  readonly pids: readonly number[];
}

/** GPU number `index` of a fake node, healthy and at work. */
export function fakeGpu(index: number, changes: Partial<FakeGpu> = {}): FakeGpu {
  const hex = index.toString(16).padStart(2, '0');
  return {
    uuid: `GPU-fa4e0000-0000-4000-8000-0000000000${hex}`,
    name: 'NVIDIA Fake 80GB',
    pciBusId: `00000000:${hex.toUpperCase()}:00.0`,
    state: 'ok',
    values: {},
    processes: [],
    mig: null,
    ...changes,
  };
}

/** Of a program, or of all programs of a test run: compiled code, and what was answered before. */
const cacheOf = (path: string) => process.env.NODE_COMPILE_CACHE ?? `${path}.cache`;

/** @returns path of the program */
export function writeFakeNvidiaSmi(dir: string, behaviour: Partial<FakeNvidiaSmi> = {}): string {
  const path = join(dir, 'nvidia-smi');
  changeFakeNvidiaSmi(path, behaviour);
  writeFileSync(
    path,
    `#!/bin/sh
read -r node < '${path}.node'
. "$node/answers"
NODE_COMPILE_CACHE='${cacheOf(path)}' exec '${process.execPath}' '${fileURLToPath(import.meta.url)}' "$node" "$@"
`,
  );
  chmodSync(path, 0o755);
  return path;
}

/** From its next start on, the program plays this node. */
export function changeFakeNvidiaSmi(path: string, behaviour: Partial<FakeNvidiaSmi>): void {
  const whole: FakeNvidiaSmi = {
    driverVersion: '580.10.01',
    cudaVersion: '13.0',
    gpus: [fakeGpu(0), fakeGpu(1)],
    linkKind: 'NV18',
    nics: [],
    failure: null,
    delayMs: 0,
    ...behaviour,
  };
  const text = JSON.stringify(whole);
  const node = join(cacheOf(path), 'nvidia-smi', createHash('sha256').update(text).digest('hex'));
  if (!existsSync(join(node, 'answers'))) {
    mkdirSync(node, { recursive: true });
    replaceFile(join(node, 'node.json'), text);
    keepAnswers(node, whole);
  }
  replaceFile(`${path}.node`, `${node}\n`);
}

/** What any node was asked, in the folder beside those of the nodes: the agent asks every node the same few questions. */
const askedPath = (node: string) => join(dirname(node), 'asked');

function askedBefore(node: string): readonly (readonly string[])[] {
  if (!existsSync(askedPath(node))) return [];
  const lines = new Set(readFileSync(askedPath(node), 'utf8').trimEnd().split('\n'));
  return [...lines].map((line) => JSON.parse(line));
}

interface Outcome {
  readonly text: string;
  readonly status: number;
}

/**
 * The answers of this node to all that any node was asked, as a script that ends the shell with the right one: that costs a tenth
 * of a start of Node. A node that waits before it answers has none.
 */
function keepAnswers(path: string, node: FakeNvidiaSmi): void {
  const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
  const cases = (node.delayMs > 0 ? [] : askedBefore(path)).map((args) => {
    const { text, status } = outcome(node, args);
    return `${quoted(args.join(' '))}) printf %s ${quoted(text)}; exit ${status};;\n`;
  });
  replaceFile(join(path, 'answers'), `case "$*" in\n${cases.join('')}esac\n`);
}

/** Whoever reads it meanwhile sees all of the old text or all of the new one. */
function replaceFile(path: string, text: string): void {
  writeFileSync(`${path}.${process.pid}`, text);
  renameSync(`${path}.${process.pid}`, path);
}

const usualValues: Readonly<Record<string, string>> = {
  'utilization.gpu': '97',
  'utilization.memory': '41',
  'utilization.encoder': '0',
  'utilization.decoder': '0',
  'memory.total': '81559',
  'memory.used': '40000',
  'memory.free': '41080',
  'memory.reserved': '479',
  'temperature.gpu': '61',
  'temperature.memory': '72',
  'power.draw': '512.25',
  'enforced.power.limit': '700.00',
  'clocks.current.sm': '1980',
  'clocks.current.memory': '2619',
  'clocks_event_reasons.active': '0x0000000000000000',
  'ecc.errors.corrected.volatile.total': '0',
  'ecc.errors.uncorrected.volatile.total': '0',
  'ecc.errors.corrected.aggregate.total': '3',
  'ecc.errors.uncorrected.aggregate.total': '0',
  'remapped_rows.correctable': '0',
  'remapped_rows.uncorrectable': '0',
  'remapped_rows.pending': 'No',
  'remapped_rows.failure': 'No',
  'retired_pages.pending': '[N/A]',
  gpu_recovery_action: 'None',
};

const identityFields = ['index', 'uuid', 'name', 'pci.bus_id', 'driver_version'];

/** A failure as the real program prints it: on stdout, with a status. */
class Failure extends Error {
  readonly status: number;

  constructor(text: string, status: number) {
    super(text);
    this.status = status;
  }
}

function answer(node: FakeNvidiaSmi, args: readonly string[]): string {
  if (node.failure !== null) throw new Failure(node.failure.text, node.failure.status);
  const [first = ''] = args;
  if (first === '--help-query-gpu') return help(node);
  if (first === '-L') return list(node);
  if (first === 'topo') return topology(node);
  const gpus = selected(node, args);
  if (first.startsWith('--query-gpu=')) return csv(node, gpus, first.slice('--query-gpu='.length).split(','));
  if (first.startsWith('--query-compute-apps=')) return computeApps(gpus);
  if (first === '-q' && args[1] === '-x') return xml(node, gpus);
  throw new Failure(`Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.`, 1);
}

function selected(node: FakeNvidiaSmi, args: readonly string[]): readonly FakeGpu[] {
  const present = node.gpus.filter(({ state }) => state !== 'gone');
  const names = args[args.indexOf('-i') + 1]?.split(',');
  const gpus = args.includes('-i')
    ? present.filter(
        (gpu) => names?.includes(gpu.uuid) === true || names?.includes(String(present.indexOf(gpu))),
      )
    : present;
  if (gpus.length === 0) throw new Failure('No devices were found', 6);
  const dead = gpus.find(({ state }) => state === 'dead');
  if (dead !== undefined) {
    const place = dead.pciBusId.slice(4);
    throw new Failure(`Unable to determine the device handle for GPU${place}: Unknown Error`, 255);
  }
  return gpus;
}

function valueOf(node: FakeNvidiaSmi, gpu: FakeGpu, field: string): string {
  const identity: Readonly<Record<string, string>> = {
    index: String(node.gpus.filter(({ state }) => state !== 'gone').indexOf(gpu)),
    uuid: gpu.uuid,
    name: gpu.name,
    'pci.bus_id': gpu.pciBusId,
    driver_version: node.driverVersion,
  };
  const own = identity[field];
  if (own !== undefined) return own;
  if (gpu.state === 'lost') return '[GPU is lost]';
  if (gpu.state === 'reset_required') return '[GPU requires reset]';
  return gpu.values[field] ?? usualValues[field] ?? '[N/A]';
}

function knownFields(node: FakeNvidiaSmi): readonly string[] {
  const extra = node.gpus.flatMap(({ values }) => Object.keys(values));
  return [...new Set([...identityFields, ...Object.keys(usualValues), ...extra])];
}

function help(node: FakeNvidiaSmi): string {
  const entries = knownFields(node).map((field) => `"${field}"\nWhat ${field} means.\n`);
  return `List of valid properties to query for the switch "--query-gpu=":\n\n${entries.join('\n')}`;
}

function csv(node: FakeNvidiaSmi, gpus: readonly FakeGpu[], fields: readonly string[]): string {
  const known = knownFields(node);
  const unknown = fields.find((field) => !known.includes(field));
  if (unknown !== undefined) throw new Failure(`Field "${unknown}" is not a valid field to query.\n`, 2);
  return gpus.map((gpu) => `${fields.map((field) => valueOf(node, gpu, field)).join(', ')}\n`).join('');
}

function computeApps(gpus: readonly FakeGpu[]): string {
  return gpus
    .flatMap(({ uuid, processes }) => processes.map(({ pid, memoryMb }) => `${uuid}, ${pid}, ${memoryMb}\n`))
    .join('');
}

function list({ gpus }: FakeNvidiaSmi): string {
  const present = gpus.filter(({ state }) => state !== 'gone');
  return present
    .flatMap(({ name, uuid, mig }, index) => [
      `GPU ${index}: ${name} (UUID: ${uuid})\n`,
      ...(mig ?? []).map(
        (instance, number) => `  MIG ${instance.profile}     Device  ${number}: (UUID: ${instance.uuid})\n`,
      ),
    ])
    .join('');
}

function topology({ gpus, nics, linkKind }: FakeNvidiaSmi): string {
  const cards = gpus.filter(({ state }) => state !== 'gone').map((_, index) => `GPU${index}`);
  const nicNames = nics.map((_, index) => `NIC${index}`);
  const devices = [...cards, ...nicNames];
  const header = ['', ...devices, 'CPU Affinity', 'NUMA Affinity', 'GPU NUMA ID'].join('\t');
  const rows = devices.map((from) => {
    const kinds = devices.map((to) => {
      if (from === to) return ' X ';
      return cards.includes(from) && cards.includes(to) ? linkKind : 'PXB';
    });
    const after = cards.includes(from) ? ['0-31', '0', '', 'N/A'] : ['', '', '', ''];
    return [from, ...kinds, ...after].join('\t');
  });
  const legend = nics.map((name, index) => `  NIC${index}: ${name}`);
  const underlined = header.replace('\t', '\t\u001B[4m');
  return [`${underlined}\u001B[0m`, ...rows, '', 'NIC Legend:', '', ...legend, ''].join('\n');
}

function xml(node: FakeNvidiaSmi, gpus: readonly FakeGpu[]): string {
  const attached = node.gpus.filter(({ state }) => state !== 'gone').length;
  return `<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">
<nvidia_smi_log>
<driver_version>${node.driverVersion}</driver_version>
<cuda_version>${node.cudaVersion}</cuda_version>
<attached_gpus>${attached}</attached_gpus>
${gpus.map((gpu) => xmlCard(node, gpu)).join('\n')}
</nvidia_smi_log>
`;
}

function xmlCard(node: FakeNvidiaSmi, gpu: FakeGpu): string {
  const text = (field: string, unit: string): string => {
    const value = valueOf(node, gpu, field).replaceAll(/[[\]]/g, '');
    return /^-?[\d.]+$/.test(value) ? `${value}${unit}` : value;
  };
  const instances = (gpu.mig ?? []).map(
    (mig, index) => `<mig_device><index>${index}</index>
<gpu_instance_id>${mig.gpuInstanceId}</gpu_instance_id><compute_instance_id>0</compute_instance_id>
<fb_memory_usage><total>${mig.memoryTotalMb} MiB</total><used>${mig.memoryUsedMb} MiB</used></fb_memory_usage>
</mig_device>`,
  );
  const processes = [
    ...gpu.processes.map(({ pid, memoryMb }) => ({ pid, memoryMb, instance: 'N/A' })),
    ...(gpu.mig ?? []).flatMap(({ pids, gpuInstanceId, memoryUsedMb }) =>
      pids.map((pid) => ({ pid, memoryMb: memoryUsedMb, instance: String(gpuInstanceId) })),
    ),
  ].map(
    ({ pid, memoryMb, instance }) => `<process_info><gpu_instance_id>${instance}</gpu_instance_id>
<compute_instance_id>${instance === 'N/A' ? 'N/A' : 0}</compute_instance_id>
<pid>${pid}</pid><type>C</type><process_name>python</process_name><used_memory>${memoryMb} MiB</used_memory>
</process_info>`,
  );
  return `<gpu id="${gpu.pciBusId}">
<product_name>${gpu.name}</product_name>
<mig_mode><current_mig>${gpu.mig === null ? 'Disabled' : 'Enabled'}</current_mig></mig_mode>
<mig_devices>${instances.length === 0 ? 'None' : instances.join('\n')}</mig_devices>
<serial>${text('serial', '')}</serial>
<uuid>${gpu.uuid}</uuid>
<gpu_recovery_action>${text('gpu_recovery_action', '')}</gpu_recovery_action>
<pci><pci_bus_id>${gpu.pciBusId}</pci_bus_id><replay_counter>0</replay_counter></pci>
<fb_memory_usage><total>${text('memory.total', ' MiB')}</total><reserved>${text('memory.reserved', ' MiB')}</reserved>
<used>${text('memory.used', ' MiB')}</used><free>${text('memory.free', ' MiB')}</free></fb_memory_usage>
<utilization><gpu_util>${gpu.mig === null ? text('utilization.gpu', ' %') : 'N/A'}</gpu_util></utilization>
<temperature><gpu_temp>${text('temperature.gpu', ' C')}</gpu_temp></temperature>
<gpu_power_readings><average_power_draw>${text('power.draw', ' W')}</average_power_draw></gpu_power_readings>
<clocks><sm_clock>${text('clocks.current.sm', ' MHz')}</sm_clock></clocks>
<processes>${processes.join('\n')}</processes>
</gpu>`;
}

async function main(): Promise<void> {
  const [nodePath = '', ...args] = process.argv.slice(2);
  const node = JSON.parse(readFileSync(join(nodePath, 'node.json'), 'utf8')) as FakeNvidiaSmi;
  if (node.delayMs > 0) await sleep(node.delayMs);
  const given = outcome(node, args);
  process.stdout.write(given.text);
  process.exitCode = given.status;
  appendFileSync(askedPath(nodePath), `${JSON.stringify(args)}\n`);
  keepAnswers(nodePath, node);
}

function outcome(node: FakeNvidiaSmi, args: readonly string[]): Outcome {
  try {
    return { text: answer(node, args), status: 0 };
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return { text: `${error.message}\n`, status: error.status };
  }
}

// Not so in a test that imports the writer.
if (import.meta.main) await main();
