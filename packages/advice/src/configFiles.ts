/** Launch scripts and configuration files of one plan, as text. */

import type { OptimizerName, Precision } from './contextFields.ts';
import type { GpuModel } from './gpus.ts';
import { canOffload, memoryOf, type Offload, type ParallelMethod } from './memory.ts';
import type { ModelShape } from './modelShape.ts';
import { type ParallelPlan, usableShare } from './parallelPlan.ts';

export interface ConfigFile {
  readonly name: string;
  readonly about: string;
  readonly text: string;
  /** Whether the training fits into the GPUs with this file. */
  readonly fits: boolean;
}

export interface Launch {
  readonly plan: ParallelPlan;
  readonly shape: ModelShape;
  readonly precision: Precision;
  readonly optimizer: OptimizerName;
  readonly gpu: GpuModel;
  readonly nodes: number;
  readonly gpusPerNode: number;
  /** null: one node, whose GPUs do not use the network. */
  readonly ibDisable: '0' | '1' | null;
  readonly framework: 'pytorch' | 'tensorflow';
}

export function configFiles(launch: Launch): readonly ConfigFile[] {
  const job = file(
    'muster-job.yaml',
    'job file: muster submit -f muster-job.yaml',
    jobYaml(launch),
    fitsWith(launch, null),
  );
  const horovod = file(
    'horovod.sh',
    'Horovod, data parallel',
    horovodScript(launch),
    fitsWith(launch, 'ddp'),
  );
  if (launch.framework === 'tensorflow') return [job, horovod];
  const stages = ([1, 2, 3] as const).map((stage) =>
    file(
      `deepspeed-zero${stage}.json`,
      `DeepSpeed ZeRO stage ${stage}`,
      `${JSON.stringify(deepspeed(launch, stage), null, 2)}\n`,
      fitsWith(launch, `zero${stage}`),
    ),
  );
  return [
    job,
    file('torchrun-ddp.sh', 'PyTorch DDP', torchrunScript(launch, ''), fitsWith(launch, 'ddp')),
    file(
      'torchrun-fsdp.sh',
      'PyTorch FSDP',
      torchrunScript(launch, ' --fsdp fsdp.json'),
      fitsWith(launch, 'fsdp'),
    ),
    file('fsdp.json', 'settings of FSDP, for train.py to read', fsdpJson(launch), fitsWith(launch, 'fsdp')),
    ...stages,
    file(
      'accelerate.yaml',
      'Hugging Face Accelerate with FSDP',
      accelerate(launch),
      fitsWith(launch, 'fsdp'),
    ),
    horovod,
    ...(megatronFits(launch)
      ? [file('megatron.sh', 'Megatron-LM', megatronScript(launch), launch.plan.fits)]
      : []),
  ];
}

function file(name: string, about: string, text: string, fits: boolean): ConfigFile {
  return { name, about, text, fits };
}

/** Degrees of Megatron-LM are those of the plan; without any it would only be another DDP. */
function megatronFits({ plan }: Launch): boolean {
  return plan.method === 'tensor' || plan.method === 'pipeline';
}

/** @param method null: that of the plan */
function fitsWith(
  { plan, shape, precision, optimizer, gpu }: Launch,
  method: ParallelMethod | null,
): boolean {
  if (method === null) return plan.fits;
  const { degrees, microBatch, recomputation } = plan;
  const world = degrees.data * degrees.tensor * degrees.pipeline;
  const { totalBytes } = memoryOf({
    shape,
    precision,
    optimizer,
    method,
    degrees: { data: world, tensor: 1, pipeline: 1 },
    microBatch,
    recomputation,
    offload: offloadWith(method, { plan, precision, optimizer }),
  });
  return totalBytes <= usableShare * gpu.memoryGb * 1e9;
}

/** What a file of this method offloads where the plan does: as much as that, or all that the method can. */
function offloadWith(
  method: ParallelMethod,
  { plan, precision, optimizer }: Pick<Launch, 'plan' | 'precision' | 'optimizer'>,
): Offload {
  if (plan.offload === 'none') return 'none';
  // ZeRO-Offload on one GPU is that of stages 2 and 3; their files are for any number of GPUs.
  const wanted: readonly Offload[] = [plan.offload, 'parameters', 'optimizer'];
  return wanted.find((offload) => canOffload(offload, { method, precision, optimizer })) ?? 'none';
}

// ---- Scripts. `train.py` stands for the program of the user.

function scriptHead({ ibDisable }: Launch): readonly string[] {
  return ['#!/bin/sh', 'set -eu', ...(ibDisable === null ? [] : [`export NCCL_IB_DISABLE=${ibDisable}`])];
}

/** Started on each node, with NODE_RANK, MASTER_ADDR and MASTER_PORT in the environment. */
function torchrunArguments({ nodes, gpusPerNode }: Launch): string {
  if (nodes === 1) return `--standalone --nproc_per_node=${gpusPerNode}`;
  return (
    `--nnodes=${nodes} --nproc_per_node=${gpusPerNode} --node_rank="$NODE_RANK" ` +
    '--master_addr="$MASTER_ADDR" --master_port="$MASTER_PORT"'
  );
}

function torchrunScript(launch: Launch, flags: string): string {
  return lines([...scriptHead(launch), `exec torchrun ${torchrunArguments(launch)} train.py${flags} "$@"`]);
}

function horovodScript(launch: Launch): string {
  const { nodes, gpusPerNode } = launch;
  const hosts = nodes === 1 ? '' : ' --hostfile "$HOSTFILE"';
  return lines([
    ...scriptHead(launch),
    `exec horovodrun -np ${nodes * gpusPerNode}${hosts} python train.py "$@"`,
  ]);
}

function megatronScript(launch: Launch): string {
  const { plan, shape, precision } = launch;
  const { degrees, microBatch, accumulation, recomputation } = plan;
  const words = [
    `--tensor-model-parallel-size ${degrees.tensor}`,
    `--pipeline-model-parallel-size ${degrees.pipeline}`,
    ...(degrees.tensor > 1 ? ['--sequence-parallel'] : []),
    '--use-distributed-optimizer',
    `--num-layers ${shape.layers}`,
    `--hidden-size ${shape.hiddenSize}`,
    `--num-attention-heads ${shape.attentionHeads}`,
    `--seq-length ${shape.sequenceLength}`,
    `--max-position-embeddings ${shape.sequenceLength}`,
    `--micro-batch-size ${microBatch}`,
    `--global-batch-size ${microBatch * accumulation * degrees.data}`,
    ...(precision === 'fp32' ? [] : [`--${precision}`]),
    ...(recomputation === 'selective' ? ['--recompute-activations'] : []),
    ...(recomputation === 'full'
      ? ['--recompute-granularity full --recompute-method uniform --recompute-num-layers 1']
      : []),
    ...(plan.offload === 'optimizer'
      ? [
          '--optimizer-cpu-offload --optimizer-offload-fraction 1.0',
          '--overlap-cpu-optimizer-d2h-h2d',
          '--use-precision-aware-optimizer',
        ]
      : []),
  ];
  return lines([
    ...scriptHead(launch),
    // Megatron-LM refuses to overlap the exchange of tensor parallelism with more than one queue.
    ...(degrees.tensor > 1 ? ['export CUDA_DEVICE_MAX_CONNECTIONS=1'] : []),
    '# Data, tokenizer, iterations and learning rate come with the arguments: --data-path, --tokenizer-type, --train-iters, --lr.',
    `exec torchrun ${torchrunArguments(launch)} pretrain_gpt.py \\`,
    ...words.map((word) => `  ${word} \\`),
    '  "$@"',
  ]);
}

// ---- Files of settings

function deepspeed(launch: Launch, stage: 1 | 2 | 3): object {
  const { plan, precision, optimizer, nodes, gpusPerNode } = launch;
  const offload = offloadWith(`zero${stage}`, launch);
  const onCpu = { device: 'cpu', pin_memory: true };
  // ZeRO divides among all GPUs: those of a plan with tensor or pipeline parallelism included.
  const world = nodes * gpusPerNode;
  const { microBatch, recomputation } = plan;
  const batch = microBatch * plan.accumulation * plan.degrees.data;
  const accumulation = Math.max(1, Math.round(batch / (world * microBatch)));
  return {
    train_batch_size: world * microBatch * accumulation,
    train_micro_batch_size_per_gpu: microBatch,
    gradient_accumulation_steps: accumulation,
    gradient_clipping: 1,
    ...(precision === 'fp32' ? {} : { [precision]: { enabled: true } }),
    zero_optimization: {
      stage,
      overlap_comm: true,
      contiguous_gradients: true,
      ...(stage === 3 ? { stage3_gather_16bit_weights_on_model_save: true } : {}),
      ...(offload === 'none' ? {} : { offload_optimizer: onCpu }),
      ...(offload === 'parameters' ? { offload_param: onCpu } : {}),
    },
    // DeepSpeed has Adam for CPUs, and refuses other optimizers there unless it is told.
    ...(offload !== 'none' && optimizer === 'sgd' ? { zero_force_ds_cpu_optimizer: false } : {}),
    ...(recomputation === 'full' ? { activation_checkpointing: { partition_activations: false } } : {}),
  };
}

function fsdpJson(launch: Launch): string {
  const { plan, precision } = launch;
  const offload = offloadWith('fsdp', launch);
  const dtype = { fp32: 'float32', fp16: 'float16', bf16: 'bfloat16' }[precision];
  const settings = {
    sharding_strategy: plan.method === 'zero2' ? 'SHARD_GRAD_OP' : 'FULL_SHARD',
    mixed_precision: { param_dtype: dtype, reduce_dtype: dtype, buffer_dtype: dtype },
    backward_prefetch: 'BACKWARD_PRE',
    limit_all_gathers: true,
    use_orig_params: true,
    activation_checkpointing: plan.recomputation !== 'none',
    ...(offload === 'none' ? {} : { cpu_offload: { offload_params: true } }),
  };
  return `${JSON.stringify(settings, null, 2)}\n`;
}

function accelerate(launch: Launch): string {
  const { plan, precision, nodes, gpusPerNode } = launch;
  const offload = offloadWith('fsdp', launch);
  const place =
    nodes === 1
      ? []
      : [
          '# On each node: accelerate launch --config_file accelerate.yaml --machine_rank "$NODE_RANK" \\',
          '#   --main_process_ip "$MASTER_ADDR" --main_process_port "$MASTER_PORT" train.py',
          'rdzv_backend: static',
          'same_network: true',
        ];
  return lines([
    ...place,
    'compute_environment: LOCAL_MACHINE',
    'distributed_type: FSDP',
    'main_training_function: main',
    `mixed_precision: ${precision === 'fp32' ? "'no'" : precision}`,
    `num_machines: ${nodes}`,
    `num_processes: ${nodes * gpusPerNode}`,
    'fsdp_config:',
    `  fsdp_sharding_strategy: ${plan.method === 'zero2' ? 'SHARD_GRAD_OP' : 'FULL_SHARD'}`,
    '  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP',
    '  fsdp_backward_prefetch: BACKWARD_PRE',
    '  fsdp_state_dict_type: SHARDED_STATE_DICT',
    '  fsdp_use_orig_params: true',
    `  fsdp_activation_checkpointing: ${plan.recomputation !== 'none'}`,
    ...(offload === 'none' ? [] : ['  fsdp_offload_params: true']),
  ]);
}

/** Muster gives torchrun nodes, ranks and the meeting point; `mpi-hostfile` gives Horovod its hosts. */
function jobYaml(launch: Launch): string {
  const { nodes, gpusPerNode, gpu, ibDisable, framework, plan } = launch;
  const isHorovod = framework === 'tensorflow';
  const command = isHorovod
    ? [
        'horovodrun',
        '-np',
        String(nodes * gpusPerNode),
        '--hostfile',
        '$MUSTER_HOSTFILE',
        'python',
        'train.py',
      ]
    : programOf(launch);
  // A list is run as it is; the shell fills in the name of the file of hosts.
  const written = isHorovod ? JSON.stringify(`exec ${command.join(' ')}`) : JSON.stringify(command);
  // GB of the table are decimal, and drivers keep a little for themselves.
  const memoryMb = Math.floor((gpu.memoryGb * 1e9) / 1_048_576);
  const hostMb = Math.ceil(plan.hostBytes / 1_048_576);
  const ofNode = hostMb === 0 ? '' : `, memory_mb: ${hostMb}`;
  return lines([
    'name: train',
    `command: ${written}`,
    ...(isHorovod ? ['launcher: mpi-hostfile'] : []),
    ...(ibDisable === null ? [] : ['env:', `  NCCL_IB_DISABLE: '${ibDisable}'`]),
    `resources: {nodes: ${nodes}, gpus: ${gpusPerNode}, gpu_type: ${gpu.type.toUpperCase()}, gpu_memory_mb: ${memoryMb}${ofNode}}`,
    'stop_grace: 2m',
  ]);
}

function programOf({ plan: { method, offload } }: Launch): readonly string[] {
  if (method === 'tensor' || method === 'pipeline') return ['sh', 'megatron.sh'];
  if (method === 'single' && offload !== 'none') {
    const stage = offload === 'optimizer' ? 2 : 3;
    return ['torchrun', 'train.py', '--deepspeed', `deepspeed-zero${stage}.json`];
  }
  if (method === 'single' || method === 'ddp') return ['torchrun', 'train.py'];
  if (method === 'fsdp') return ['torchrun', 'train.py', '--fsdp', 'fsdp.json'];
  return ['torchrun', 'train.py', '--deepspeed', `deepspeed-${method}.json`];
}

function lines(all: readonly string[]): string {
  return `${all.join('\n')}\n`;
}
