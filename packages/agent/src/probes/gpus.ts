/** The GPUs of this node. Sources are chosen by the options; what is simulated says so. */
import { execFile } from 'node:child_process';
import type { Gpu } from '@muster/common/views';
import type { GpuOption } from '../options.ts';

/** Starting the driver on a machine without persistence mode takes seconds; a hung driver takes for ever. */
const nvidiaSmiTimeoutMs = 20_000;

/** @throws {Error} when nvidia-smi is there and fails; a node without it simply has no GPUs */
export async function probeGpus(
  option: GpuOption,
  nodeName: string,
  nvidiaSmiPath: string,
): Promise<readonly Gpu[]> {
  if (option.kind === 'simulated') return simulatedGpus(option.count, nodeName);
  const output = await listWithNvidiaSmi(nvidiaSmiPath);
  return output === null ? [] : parseGpuList(output);
}

function simulatedGpus(count: number, nodeName: string): readonly Gpu[] {
  return Array.from({ length: count }, (_, index) => ({
    uuid: `GPU-SIMULATED-${nodeName}-${index}`,
    model: 'Simulated GPU',
    memoryMb: 81_920,
    simulated: true,
  }));
}

/**
 * Parses `nvidia-smi --query-gpu=uuid,name,memory.total --format=csv,noheader,nounits`:
 *
 *     GPU-5d0c1b2a-..., NVIDIA H100 80GB HBM3, 81559
 *     GPU-6e1f2c3b-..., NVIDIA H100 80GB HBM3, [N/A]
 *
 * Sizes are MiB. A cell that is no number (`[N/A]`, `[Unknown Error]`) is unknown, never 0. A GPU that is lost, that
 * has to be reset, or that does not tell its UUID is not offered; its neighbours are.
 * @throws {Error} for a line of another shape: nvidia-smi prints its failures as plain text on stdout
 */
export function parseGpuList(output: string): readonly Gpu[] {
  const lines = output.split('\n').filter((line) => line.trim() !== '');
  if (lines.length === 1 && lines[0]?.startsWith('No devices were found') === true) return [];
  return lines.flatMap((line) => {
    const cells = line.trim().split(', ');
    const [uuid = '', model = '', memory = ''] = cells;
    if (cells.length !== 3 || !/^(GPU-|MIG-|\[)/.test(uuid)) {
      throw new Error(`nvidia-smi: ${line.trim().slice(0, 200)}`);
    }
    if (uuid.startsWith('[') || cells.some((cell) => unusable.has(cell))) return [];
    return [{ uuid, model, memoryMb: /^\d+$/.test(memory) ? Number(memory) : null, simulated: false }];
  });
}

const unusable: ReadonlySet<string> = new Set(['[GPU is lost]', '[GPU requires reset]']);

function listWithNvidiaSmi(path: string): Promise<string | null> {
  const query = ['--query-gpu=uuid,name,memory.total', '--format=csv,noheader,nounits'];
  return new Promise((resolve, reject) => {
    const options = {
      timeout: nvidiaSmiTimeoutMs,
      killSignal: 'SIGKILL',
      env: { PATH: process.env['PATH'], LC_ALL: 'C' },
    } as const;
    execFile(path, query, options, (error, stdout) => {
      if (error === null) resolve(stdout);
      else if ('code' in error && error.code === 'ENOENT') resolve(null);
      else
        reject(
          new Error(`${path} failed: ${(stdout || error.message).trim().slice(0, 200)}`, { cause: error }),
        );
    });
  });
}
