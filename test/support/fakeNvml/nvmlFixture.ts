/** A real reader process on a fake library. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { silentLogger } from '@muster/common/log';
import type { GpuSample, GpuSampling } from '../../../packages/agent/src/gpus/gpuSource.ts';
import { nvmlReaderCommand } from '../../../packages/agent/src/gpus/nvml/command.ts';
import type { NvmlDeadlines } from '../../../packages/agent/src/gpus/nvml/readerProcess.ts';
import { createNvmlSource, type NvmlSource } from '../../../packages/agent/src/gpus/nvml/source.ts';
import { tempDir } from '../services.ts';
import { buildFakeNvml, type FakeNvml, type FakeNvmlOptions } from './fakeNvml.ts';

const readerScript = fileURLToPath(new URL('../../../packages/agent/src/gpus/nvml/main.ts', import.meta.url));

/** Far longer than anything takes here, also on a busy machine: a deadline that passes is always one of a test. */
const patient: NvmlDeadlines = {
  listMs: 15_000,
  sampleMs: 15_000,
  avoidMs: 60_000,
  avoidMaxMs: 60_000,
  restartMs: 0,
  restartMaxMs: 0,
  refreshMs: 0,
};

export interface NvmlFixture extends AsyncDisposable {
  readonly fake: FakeNvml;
  readonly source: NvmlSource;
  /** Lets the pauses of the source pass; its deadlines are of real time. */
  advanceClock(ms: number): void;
  /** The only sample of this device; fails where there is none. */
  sampleOf(uuid: string): Promise<GpuSample>;
}

export interface NvmlFixtureOptions extends FakeNvmlOptions {
  readonly gpm?: boolean;
  readonly deadlines?: Partial<NvmlDeadlines>;
  /** Another library than the fake one. */
  readonly library?: string;
}

let isCompiled = false;

/**
 * Fills the compile cache. Node does so when a process ends by itself, and most readers are killed: each of them would strip the
 * types of all it loads again.
 */
function compileReader(): void {
  if (isCompiled || process.env.NODE_COMPILE_CACHE === undefined) return;
  const [node = '', ...args] = nvmlReaderCommand(process.execPath, readerScript);
  spawnSync(node, [...args, 'a library that does not exist'], { stdio: 'ignore' });
  isCompiled = true;
}

export async function nvmlFixture(options: NvmlFixtureOptions = {}): Promise<NvmlFixture> {
  compileReader();
  const dir = tempDir('nvml');
  const fake = await buildFakeNvml(dir.path, options);
  let nowMs = 0;
  const source = createNvmlSource({
    library: options.library ?? fake.path,
    command: nvmlReaderCommand(process.execPath, readerScript),
    gpm: options.gpm ?? false,
    log: silentLogger,
    clock: { wallMs: () => nowMs, monotonicMs: () => nowMs },
    deadlines: { ...patient, ...options.deadlines },
  });
  return {
    fake,
    source,
    advanceClock: (ms) => {
      nowMs += ms;
    },
    sampleOf: async (uuid) => sampleIn(await source.sample(), uuid),
    async [Symbol.asyncDispose]() {
      await source.close();
      fake.close();
      await dir.remove();
    },
  };
}

export function sampleIn({ samples, problems }: GpuSampling, uuid: string): GpuSample {
  const found = samples.filter((sample) => sample.uuid === uuid);
  if (found.length === 1 && found[0] !== undefined) return found[0];
  throw new Error(`${found.length} samples of ${uuid}; problems: ${JSON.stringify(problems)}`);
}
