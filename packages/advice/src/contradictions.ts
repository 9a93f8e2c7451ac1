/** What is right by itself in a training context and does not go together. */
import type { SpecPath } from '@muster/common/spec/path';
import type { Finding } from '@muster/common/spec/problems';
import type { AdviceTask } from './actionShape.ts';
import type { TrainingContext } from './contextFields.ts';
import { type GpuModel, gpuOf } from './gpus.ts';

const computePath = ['training_context', 'compute_requirements'];
const trainingPath = ['training_context', 'training_config'];
const modelPath = ['training_context', 'model'];

/** @param gpus what GPU types and their memory are looked up in */
export function contradictionsIn(
  context: TrainingContext,
  task: AdviceTask,
  gpus: readonly GpuModel[],
): readonly Finding[] {
  return [...ofGpus(context, task, gpus), ...ofModel(context, task), ...ofTraining(context, task, gpus)];
}

/** A value of the right form that does not go with the others. @param expected the remedy */
export function contradiction(path: SpecPath, message: string, expected: string): Finding {
  return { path, at: 'value', message, expected, suggestion: null };
}

function ofGpus({ compute }: TrainingContext, task: AdviceTask, gpus: readonly GpuModel[]): Finding[] {
  const { gpuType, gpuCount, memoryGb, gpusPerNode, interconnect } = compute;
  const found: Finding[] = [];
  if (task === 'configure_distributed') {
    if (gpuCount === null)
      found.push(missing([...computePath, 'gpu_count'], 'how many GPUs there are: 1 to 128'));
    if (gpuType === null) found.push(missing([...computePath, 'gpu_type'], 't4, v100, a100 or h100'));
  }
  if (memoryGb !== null && gpuType === null)
    found.push(
      contradiction([...computePath, 'memory_gb'], `${memoryGb} GB of no GPU type`, 'gpu_type beside it'),
    );
  if (gpuType !== null && gpuOf(compute, gpus) === null) {
    const sizes = gpus.filter(({ type }) => type === gpuType).map((gpu) => gpu.memoryGb);
    found.push(
      sizes.length === 0
        ? contradiction([...computePath, 'gpu_type'], `no ${gpuType} in the table of GPUs`, 'another type')
        : contradiction(
            [...computePath, 'memory_gb'],
            `no ${gpuType} has ${memoryGb} GB`,
            `${sizes.join(' or ')} GB, which is the memory of one GPU`,
          ),
    );
  }
  const gpu = gpuOf(compute, gpus);
  if (gpu !== null && gpu.nvlinkGbPerS === null && interconnect === 'nvlink')
    found.push(
      contradiction(
        [...computePath, 'interconnect'],
        `a ${gpu.name} has no NVLink`,
        'no interconnect for one node',
      ),
    );
  if (gpuCount === null) return found;
  if (gpuCount > gpusPerNode && gpuCount % gpusPerNode !== 0)
    found.push(
      contradiction(
        [...computePath, 'gpu_count'],
        `${gpuCount} GPUs do not fill nodes of ${gpusPerNode}`,
        `a multiple of gpus_per_node, such as ${Math.ceil(gpuCount / gpusPerNode) * gpusPerNode}`,
      ),
    );
  if (gpuCount > gpusPerNode && interconnect === 'nvlink')
    found.push(
      contradiction(
        [...computePath, 'interconnect'],
        `${gpuCount} GPUs are on several nodes of ${gpusPerNode}, and nvlink connects those of one`,
        'infiniband or ethernet',
      ),
    );
  return found;
}

/** Questions whose arithmetic is that of a neural network on GPUs. */
function isOfNetworks(task: AdviceTask): boolean {
  return task === 'configure_distributed' || task === 'manage_compute';
}

function ofModel({ model }: TrainingContext, task: AdviceTask): Finding[] {
  const { hiddenSize, attentionHeads, layers, parameters } = model;
  const found: Finding[] = [];
  if (parameters === null && isOfNetworks(task))
    found.push(missing([...modelPath, 'parameters'], 'a number of parameters, such as 7B or 350M'));
  if (hiddenSize !== null && attentionHeads !== null && hiddenSize % attentionHeads !== 0)
    found.push(
      contradiction(
        [...modelPath, 'attention_heads'],
        `${attentionHeads} heads do not divide a hidden size of ${hiddenSize}`,
        'a divisor of hidden_size',
      ),
    );
  if (hiddenSize !== null && layers !== null && parameters !== null) {
    const counted = 12 * layers * hiddenSize ** 2;
    // Embeddings and mixtures of experts add parameters; ten times as many or as few are a slip.
    if (counted > 10 * parameters || parameters > 10 * counted)
      found.push(
        contradiction(
          [...modelPath, 'parameters'],
          `${layers} layers of ${hiddenSize} have about ${counted.toExponential(1)} parameters, not ${parameters.toExponential(1)}`,
          'parameters near 12 × layers × hidden_size²',
        ),
      );
  }
  return found;
}

function ofTraining(context: TrainingContext, task: AdviceTask, gpus: readonly GpuModel[]): Finding[] {
  const { training, framework, compute, modelType, dataSizeGb } = context;
  const found: Finding[] = [];
  if (isOfNetworks(task) && framework !== 'pytorch' && framework !== 'tensorflow')
    found.push(
      contradiction(
        ['training_context', 'framework'],
        `${framework} trains no neural networks on several GPUs`,
        'pytorch or tensorflow',
      ),
    );
  const gpu = gpuOf(compute, gpus);
  if (gpu !== null && training.precision !== null && gpu.peakTflops[training.precision] === null)
    found.push(
      contradiction(
        [...trainingPath, 'precision'],
        `a ${gpu.name} does not compute ${training.precision}`,
        'fp16 or fp32',
      ),
    );
  if (training.cpuOffload === true && (framework === 'tensorflow' || training.optimizer === 'adam8bit'))
    found.push(
      contradiction(
        [...trainingPath, 'cpu_offload'],
        framework === 'tensorflow'
          ? 'Horovod offloads nothing to the CPU'
          : 'adam8bit computes on GPUs alone',
        framework === 'tensorflow' ? 'pytorch, or no cpu_offload' : 'adamw, or no cpu_offload',
      ),
    );
  if (task === 'manage_compute' && training.targetTokens === null) {
    const remedy = 'a number of tokens such as 250M, or data_size_gb of text';
    if (modelType !== 'nlp')
      found.push(
        missing([...trainingPath, 'target_tokens'], `a number of tokens; data of ${modelType} says none`),
      );
    else if (dataSizeGb === null) found.push(missing([...trainingPath, 'target_tokens'], remedy));
  }
  if (task === 'design_pipeline' && context.data.path === null)
    found.push(missing(['training_context', 'data', 'path'], 'a path on the nodes, such as /data/train.csv'));
  return found;
}

function missing(path: SpecPath, expected: string): Finding {
  return contradiction(path, 'missing', expected);
}
