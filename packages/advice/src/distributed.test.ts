import { parseJobSpec } from '@muster/common/spec/parse';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { configureDistributed, type DistributedAdvice } from './distributed.ts';
import { aTrainingContext, problemsOfContext } from './file/contextFixture.ts';
import { readContext } from './file/readContext.ts';
import { gpuTable } from './gpus.ts';

function advise(given: Readonly<Record<string, unknown>>): DistributedAdvice {
  const result = configureDistributed(aTrainingContext(given), gpuTable);
  if (!result.ok) throw new Error(JSON.stringify(result.findings));
  return result.advice;
}

function onGpus(parameters: string, gpuType: string, gpuCount: number, more: object = {}): DistributedAdvice {
  return advise({
    model: { parameters },
    compute_requirements: {
      gpu_type: gpuType,
      gpu_count: gpuCount,
      interconnect: gpuCount > 8 ? 'infiniband' : undefined,
    },
    ...more,
  });
}

test.each([
  ['125M', 'a100', 1, 'none', 'single'],
  ['350M', 'a100', 8, 'data_parallel', 'ddp'],
  ['900M', 't4', 4, 'deepspeed', 'zero1'],
  ['7B', 'a100', 4, 'deepspeed', 'zero2'],
  ['7B', 'v100', 4, 'model_parallel', 'tensor'],
  ['5B', 'v100', 4, 'fsdp', 'fsdp'],
  ['13B', 'h100', 8, 'deepspeed', 'zero3'],
  ['70B', 'h100', 32, 'deepspeed', 'zero3'],
  ['175B', 'h100', 128, 'pipeline_parallel', 'pipeline'],
])('%s on %s × %d: %s', (parameters, gpuType, gpuCount, strategy, method) => {
  const { distributed_config: config, plan } = onGpus(parameters, gpuType, gpuCount);
  expect(config).toEqual({ strategy, world_size: gpuCount, backend: 'nccl' });
  expect(plan).toMatchObject({ method, fits: true });
});

test('a default that does not fit is named, with its figures, before the one that does', () => {
  const { reasons } = onGpus('5B', 'v100', 4);
  expect(reasons).toEqual([
    'For 5 B parameters on 4 GPUs ZeRO stage 2 comes first.',
    expect.stringMatching(
      /^ZeRO stage 2 does not fit with every layer recomputed: \d\d\.\d GB of 28\.8 GB that can be used of each GPU\.$/,
    ),
    expect.stringMatching(/^FSDP fits with every layer recomputed: 2\d\.\d GB of 28\.8 GB/),
  ]);
});

test('where nothing fits, it says how many GPUs of which model would do', () => {
  const { distributed_config: config, sufficient, files } = onGpus('70B', 't4', 4);
  expect({ config, files }).toEqual({ config: null, files: [] });
  expect(sufficient.map(({ gpu }) => gpu)).toEqual(gpuTable.map(({ name }) => name));
  for (const { gpu, gpuCount } of sufficient.filter((each) => each.gpuCount <= 128)) {
    const model = gpuTable.find(({ name }) => name === gpu);
    const compute = { gpu_type: model?.type, gpu_count: gpuCount, memory_gb: model?.memoryGb };
    const onThose = (count: number) =>
      advise({
        model: { parameters: '70B' },
        compute_requirements: { ...compute, gpu_count: count },
        training_config: { cpu_offload: false },
      });
    expect(onThose(gpuCount).plan, gpu).not.toBeNull();
    expect(onThose(gpuCount / 2).plan, gpu).toBeNull();
  }
});

/** What the files say of an offload, by their names. */
function offloadsIn({ files }: DistributedAdvice): Readonly<Record<string, boolean>> {
  const words = /offload_optimizer|offload_param|cpu_offload|fsdp_offload_params|--optimizer-cpu-offload/;
  const named = ['deepspeed-zero1.json', 'deepspeed-zero2.json', 'deepspeed-zero3.json', 'fsdp.json'];
  const names = [...named, 'accelerate.yaml', 'megatron.sh'];
  return Object.fromEntries(
    files.filter(({ name }) => names.includes(name)).map(({ name, text }) => [name, words.test(text)]),
  );
}

test.each([
  // Recomputing every layer is enough, so nothing leaves the GPU.
  ['5B', 'v100', 4, {}, 'fsdp', 'fsdp', 'full', 'none'],
  ['9B', 'v100', 1, { host_memory_gb: 512 }, 'deepspeed', 'single', 'full', 'optimizer'],
  ['13B', 'v100', 1, { host_memory_gb: 512 }, 'deepspeed', 'single', 'selective', 'parameters'],
  ['30B', 'a100', 4, { host_memory_gb: 1_024 }, 'deepspeed', 'zero3', 'selective', 'optimizer'],
  ['70B', 't4', 4, { host_memory_gb: 2_048 }, 'deepspeed', 'zero3', 'full', 'parameters'],
  ['7B', 't4', 4, {}, 'model_parallel', 'tensor', 'selective', 'optimizer'],
])(
  '%s on %s × %d with %j: the GPUs first, then what recomputing saves, then the memory of the node',
  (parameters, gpuType, gpuCount, node, strategy, method, recomputation, offload) => {
    const advice = advise({
      model: { parameters },
      compute_requirements: { gpu_type: gpuType, gpu_count: gpuCount, ...node },
    });
    const { plan, considered, distributed_config: config, files, sources, sufficient } = advice;
    expect(config).toEqual({ strategy, world_size: gpuCount, backend: 'nccl' });
    expect(plan).toMatchObject({ method, recomputation, offload, fits: true });
    const refused = considered.slice(0, -1).filter((each) => each.offload === 'none');
    expect(refused.every((each) => each.recomputation === 'full')).toBe(true);
    const isOffloaded = offload !== 'none';
    expect(sufficient.length > 0).toBe(isOffloaded);
    expect(sources.some((source) => source.includes('ZeRO-Offload'))).toBe(isOffloaded);
    expect(offloadsIn(advice)).toEqual({
      'deepspeed-zero1.json': false,
      'deepspeed-zero2.json': isOffloaded,
      'deepspeed-zero3.json': isOffloaded,
      'fsdp.json': isOffloaded,
      'accelerate.yaml': isOffloaded,
      ...(method === 'tensor' ? { 'megatron.sh': isOffloaded } : {}),
    });
    const job = parseJobSpec(files.find(({ name }) => name === 'muster-job.yaml')?.text ?? '');
    const memoryMb = isOffloaded ? Math.ceil((plan?.hostBytes ?? 0) / 1_048_576) : null;
    expect(job).toMatchObject({ ok: true, spec: { resources: { memoryMb } } });
  },
);

test('the file that the job runs keeps what the plan says on the CPU', () => {
  const on = (parameters: string, more: object = {}) =>
    advise({
      model: { parameters },
      compute_requirements: { gpu_type: 'v100', gpu_count: 1, host_memory_gb: 512 },
      ...more,
    });
  const textOf = (advice: DistributedAdvice, name: string) =>
    advice.files.find((each) => each.name === name)?.text ?? '';
  const some = on('9B');
  expect(textOf(some, 'muster-job.yaml')).toContain('"--deepspeed","deepspeed-zero2.json"');
  const cpu = { device: 'cpu', pin_memory: true };
  expect(JSON.parse(textOf(some, 'deepspeed-zero2.json'))).toMatchObject({
    zero_optimization: { stage: 2, offload_optimizer: cpu },
    activation_checkpointing: {},
  });
  expect(textOf(some, 'deepspeed-zero3.json')).not.toContain('offload_param');
  const all = on('13B');
  expect(textOf(all, 'muster-job.yaml')).toContain('"--deepspeed","deepspeed-zero3.json"');
  expect(JSON.parse(textOf(all, 'deepspeed-zero3.json'))).toMatchObject({
    zero_optimization: { stage: 3, offload_optimizer: cpu, offload_param: cpu },
  });
  expect(JSON.parse(textOf(all, 'fsdp.json'))).toMatchObject({
    activation_checkpointing: true,
    cpu_offload: { offload_params: true },
  });
  expect(parse(textOf(all, 'accelerate.yaml'))).toMatchObject({
    fsdp_config: { fsdp_activation_checkpointing: true, fsdp_offload_params: true },
  });
  const withMomentum = on('9B', { training_config: { optimizer: 'sgd' } });
  expect(textOf(withMomentum, 'deepspeed-zero2.json')).toContain('"zero_force_ds_cpu_optimizer": false');
  expect(all.tips.map(({ because }) => because).join('\n')).toMatch(
    /a step moves 78\.0 GB between each GPU and the memory of its node, which takes 6\.5 s over PCIe of 12 GB\/s/,
  );
});

test('FSDP with an offload is told how to begin, and how to accumulate', () => {
  const { plan, tips } = advise({
    model: { parameters: '20B' },
    compute_requirements: { gpu_type: 'v100', gpu_count: 2, host_memory_gb: 1_024 },
    training_config: { distributed_strategy: 'fsdp', batch_size: 512, cpu_offload: true, optimizer: 'sgd' },
  });
  expect(plan).toMatchObject({ method: 'fsdp', offload: 'parameters' });
  expect(tips.map(({ tip }) => tip).join('\n')).toMatch(/cpu:gloo,cuda:nccl[^]*within no_sync\(\)/);
  expect(tips.map(({ tip }) => tip).join('\n')).not.toContain('Adam');
});

test('an offload needs the memory of the node, and can be refused, or asked for', () => {
  const on = (node: object, training: object) =>
    advise({
      model: { parameters: '13B' },
      compute_requirements: { gpu_type: 'v100', gpu_count: 1, ...node },
      training_config: training,
    });
  // By its model a V100 has 96 GB of the memory of its node.
  const usual = on({}, {});
  expect(usual.plan).toBeNull();
  expect(usual.reasons).toContain(
    'one GPU with weights and optimizer on the CPU does not fit: it takes 351 GB of the 96.0 GB of memory of each node.',
  );
  expect(usual.assumptions.join('\n')).toContain('a node has 96 GB of memory for the job');
  expect(on({ host_memory_gb: 512 }, { cpu_offload: false }).considered).toHaveLength(1);
  expect(on({ host_memory_gb: 512 }, { optimizer: 'adam8bit' }).considered).toHaveLength(1);
  const asked = advise({
    model: { parameters: '350M' },
    compute_requirements: { gpu_type: 'a100', gpu_count: 8 },
    training_config: { cpu_offload: true },
  });
  expect(asked.plan).toMatchObject({ method: 'zero2', offload: 'optimizer' });
});

test.each([
  [{ framework: 'tensorflow' }, {}, 'Horovod offloads nothing to the CPU; pytorch, or no cpu_offload'],
  [{}, { optimizer: 'adam8bit' }, 'adam8bit computes on GPUs alone; adamw, or no cpu_offload'],
])('an offload that nothing can do is refused with its place: %j %j', (more, training, problem) => {
  const context = {
    model: { parameters: '350M' },
    compute_requirements: { gpu_type: 'a100', gpu_count: 8 },
    training_config: { cpu_offload: true, ...training },
    ...more,
  };
  expect(problemsOfContext({ training_context: context })).toEqual([
    `training_context.training_config.cpu_offload: ${problem}`,
  ]);
});

test('a strategy that is asked for comes first', () => {
  const more = { training_config: { distributed_strategy: 'fsdp' } };
  expect(onGpus('350M', 'a100', 8, more).distributed_config?.strategy).toBe('fsdp');
});

test('tips come with the figure that led to them', () => {
  const onEthernet = advise({
    model: { parameters: '900M' },
    compute_requirements: {
      gpu_type: 'a100',
      gpu_count: 16,
      interconnect: 'ethernet',
      interconnect_gb_per_s: 1.25,
    },
    training_config: { precision: 'fp32' },
  });
  expect(onEthernet.tips.map(({ tip }) => tip)).toEqual(
    expect.arrayContaining([
      'Compress gradients: the hook powerSGD_hook, or fp16_compress_hook, of DDP.',
      'Train in bf16.',
      'Set NCCL_IB_DISABLE=1.',
    ]),
  );
  expect(onEthernet.tips.map(({ because }) => because).join('\n')).toContain('over ethernet of 1.25 GB/s');
  const onInfiniband = onGpus('13B', 'a100', 16).tips;
  expect(onInfiniband).toContainEqual({
    tip: 'Set NCCL_IB_DISABLE=0.',
    because: 'the 2 nodes are connected by infiniband, 25 GB/s',
  });
  const tight = onGpus('7B', 'v100', 4).tips;
  expect(tight.find(({ tip }) => /recompute|checkpointing/i.test(tip))?.because).toMatch(
    /\d GB, and a GPU has 32 GB/,
  );
});

test.each([
  ['350M', 'a100', 8, ''],
  ['7B', 'a100', 16, ''],
  ['13B', 'h100', 16, ''],
  ['175B', 'h100', 128, ''],
  ['350M', 'v100', 16, 'tensorflow'],
])(
  'the files for %s on %s × %d %s can be read, and agree with the answer',
  (parameters, gpuType, gpuCount, framework) => {
    const more = { ...(framework === '' ? {} : { framework }), training_config: { batch_size: 512 } };
    const { files, plan, distributed_config: config } = onGpus(parameters, gpuType, gpuCount, more);
    const textOf = (name: string) => files.find((each) => each.name === name)?.text ?? '';
    for (const { name, text } of files.filter((each) => each.name.endsWith('.json'))) {
      const settings = JSON.parse(text) as Record<string, number>;
      if (!name.startsWith('deepspeed')) continue;
      expect(settings['train_batch_size'], name).toBe(
        (settings['train_micro_batch_size_per_gpu'] ?? 0) *
          (settings['gradient_accumulation_steps'] ?? 0) *
          gpuCount,
      );
    }
    const job = parseJobSpec(textOf('muster-job.yaml'));
    expect(job).toMatchObject({ ok: true, spec: { resources: { nodes: gpuCount / 8, gpus: 8 } } });
    if (framework === '')
      expect(parse(textOf('accelerate.yaml'))).toMatchObject({
        num_processes: config?.world_size,
        mixed_precision: 'bf16',
      });
    if (plan?.method === 'pipeline')
      expect(textOf('megatron.sh')).toContain(`--pipeline-model-parallel-size ${plan.degrees.pipeline}`);
    expect(files.filter(({ text }) => text.includes('undefined') || text.includes('NaN'))).toEqual([]);
  },
);

test('scripts take the flags of every torchrun, and what Megatron-LM and Accelerate need beside them', () => {
  const textOf = (advice: DistributedAdvice, name: string) =>
    advice.files.find((each) => each.name === name)?.text ?? '';
  const large = onGpus('175B', 'h100', 128);
  // PyTorch 1 knows underscores only.
  expect(textOf(large, 'torchrun-fsdp.sh')).toContain('--nproc_per_node=8 --node_rank="$NODE_RANK"');
  expect(textOf(large, 'megatron.sh')).toContain('export CUDA_DEVICE_MAX_CONNECTIONS=1\n');
  expect(textOf(large, 'accelerate.yaml')).toContain('--main_process_ip "$MASTER_ADDR"');
  expect(textOf(onGpus('7B', 'a100', 8), 'accelerate.yaml')).not.toContain('main_process_ip');
});

test('compression is advised only where the strategy has it', () => {
  const tipsOf = (parameters: string) =>
    onGpus(parameters, 'a100', 16, {
      compute_requirements: { gpu_type: 'a100', gpu_count: 16, interconnect_gb_per_s: 1 },
    })
      .tips.map(({ tip }) => tip)
      .filter((tip) => /ompress/.test(tip));
  expect(tipsOf('7B')).toEqual([
    'Use InfiniBand, or a larger batch: there is no compression for this strategy.',
  ]);
  expect(tipsOf('13B')).toEqual([expect.stringContaining('ZeRO++')]);
});

test.each([
  [4, /4 samples are fewer than the 8/, /8 or a multiple of it/],
  [100, /100 samples do not divide among 8/, /96 or 104/],
])('a batch of %d for 8 ranks is refused with its place', (batchSize, message, expected) => {
  const context = aTrainingContext({
    model: { parameters: '350M' },
    compute_requirements: { gpu_type: 'a100', gpu_count: 8 },
    training_config: { batch_size: batchSize },
  });
  const result = configureDistributed(context, gpuTable);
  expect(result).toMatchObject({
    ok: false,
    findings: [
      {
        path: ['training_context', 'training_config', 'batch_size'],
        message: expect.stringMatching(message) as string,
        expected: expect.stringMatching(expected) as string,
      },
    ],
  });
});

test('any input gets an answer or a problem with its place, and degrees multiply to the world size', () => {
  const input = fc.record({
    model: fc.record(
      {
        parameters: fc.oneof(fc.integer({ min: 1e5, max: 1e13 }), fc.constantFrom('7B', '0.5B', '70 B', 'x')),
        layers: fc.integer({ min: 1, max: 200 }),
        hidden_size: fc.integer({ min: 16, max: 20_000 }),
        attention_heads: fc.integer({ min: 1, max: 130 }),
        sequence_length: fc.integer({ min: 1, max: 1e6 }),
      },
      { requiredKeys: ['parameters'] },
    ),
    compute_requirements: fc.record(
      {
        gpu_type: fc.constantFrom('t4', 'v100', 'a100', 'h100'),
        gpu_count: fc.oneof(fc.integer({ min: 0, max: 129 }), fc.constantFrom(1, 4, 8, 16, 64, 128)),
        gpus_per_node: fc.integer({ min: 1, max: 16 }),
        memory_gb: fc.constantFrom(16, 32, 40, 80, 81),
        interconnect: fc.constantFrom('nvlink', 'infiniband', 'ethernet'),
      },
      { requiredKeys: ['gpu_type', 'gpu_count'] },
    ),
    training_config: fc.record(
      {
        batch_size: fc.integer({ min: 1, max: 5_000 }),
        precision: fc.constantFrom('fp32', 'fp16', 'bf16'),
        optimizer: fc.constantFrom('adamw', 'sgd', 'adam8bit'),
        gradient_checkpointing: fc.boolean(),
        distributed_strategy: fc.constantFrom(
          'none',
          'fsdp',
          'deepspeed',
          'model_parallel',
          'pipeline_parallel',
        ),
      },
      { requiredKeys: [] },
    ),
  });
  fc.assert(
    fc.property(input, (given) => {
      const read = readContext({ training_context: given }, 'configure_distributed', gpuTable);
      const result = read.ok ? configureDistributed(read.context, gpuTable) : read;
      if (!result.ok) {
        expect(result.findings.map(({ path }) => path[0])).toContain('training_context');
        return;
      }
      const { plan, distributed_config: config } = result.advice;
      expect(plan === null).toBe(config === null);
      if (plan === null) return;
      const { data, tensor, pipeline } = plan.degrees;
      expect(data * tensor * pipeline).toBe(given.compute_requirements.gpu_count);
      expect(plan.memory.totalBytes).toBeLessThanOrEqual(result.advice.usableBytes);
      const batch = given.training_config.batch_size;
      if (batch !== undefined) expect(plan.microBatch * plan.accumulation * data).toBe(batch);
    }),
    { numRuns: 300 },
  );
});
