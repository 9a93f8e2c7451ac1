/** What follows from each cause: who has to act unless more is known of the single case, and what to do about it. */
import type { Blame, CauseKind } from './spec/causes.ts';

export interface CauseFacts {
  /** Where nothing about the single case says otherwise. */
  readonly blame: Blame;
  /** One sentence that names the remedy, with the key of the job file where there is one. */
  readonly advice: string;
}

export const causeFacts: Readonly<Record<CauseKind, CauseFacts>> = {
  cuda_oom: {
    blame: 'job',
    advice:
      'Use a smaller batch (with cuda_oom in retry.on each retry does so, by retry.batch_scale), shard the model, or ask for more: resources.gpu_memory_mb.',
  },
  cuda_illegal_access: {
    blame: 'job',
    advice:
      'Run it once with CUDA_LAUNCH_BLOCKING=1 in env to find the kernel that goes out of bounds; if it only ever happens on one GPU, drain that node.',
  },
  gpu_suspect: {
    blame: 'gpu',
    advice:
      'Look at the GPU before the program: its Xids, other processes on it, and whether a retry on another node succeeds; drain the node until then.',
  },
  gpu_hw_ecc: {
    blame: 'gpu',
    advice: 'Drain the node and reset the GPU; replace it if the error comes back. Retry elsewhere.',
  },
  gpu_hw_nvlink: {
    blame: 'gpu',
    advice: 'Drain the node, then reset its GPUs and check the NVLink bridge or switch. Retry elsewhere.',
  },
  nccl_timeout: {
    blame: 'network',
    advice:
      'Retry; if it happens again, exclude the node of the rank that stopped first, and measure the paths between the nodes with preflight in the spec.',
  },
  nccl_error: {
    blame: 'network',
    advice:
      "Look for the first NCCL WARN or 'Last error:' of every rank (NCCL_DEBUG=WARN in env), and check the network (network and preflight in the spec).",
  },
  nan_loss: {
    blame: 'job',
    advice:
      'Resume from the checkpoint before the first NaN with a lower learning rate (retry.lr_scale, MUSTER_LR_SCALE), or use bf16 instead of fp16.',
  },
  loss_divergence: {
    blame: 'job',
    advice:
      'Resume from the checkpoint before the loss rose with a lower learning rate (retry.lr_scale, MUSTER_LR_SCALE), and check the data of these steps.',
  },
  loss_scale_exhausted: {
    blame: 'job',
    advice:
      'Gradients overflow at every scale: lower the learning rate, clip gradients, or use bf16 instead of fp16.',
  },
  corrupt_checkpoint: {
    blame: 'storage',
    advice:
      'Resume from the previous checkpoint (muster requeue --from STEP), and check the storage behind checkpoint.dir.',
  },
  disk_full: {
    blame: 'storage',
    advice:
      'Free space or raise the quota where it writes, keep fewer checkpoints (checkpoint.keep_last), and do not resume from the one it was writing.',
  },
  shm_exhausted: {
    blame: 'platform',
    advice: 'Give it more shared memory (resources.shm_mb in the spec), or use fewer data loader workers.',
  },
  host_oom: {
    blame: 'job',
    advice:
      'Ask for more memory (resources.memory_mb in the spec), or use fewer or leaner data loader workers.',
  },
  stopped_by_signal: {
    blame: 'platform',
    advice: 'It was stopped by a signal from outside: resume it from its newest checkpoint.',
  },
  import_error: {
    blame: 'job',
    advice:
      'Install the missing module, or one built for this version of PyTorch and CUDA, where the program runs: in its image or venv.',
  },
  python_exception: {
    blame: 'job',
    advice: 'Fix the exception; a retry of the same program fails in the same way.',
  },
  rendezvous: {
    blame: 'platform',
    advice:
      'Check that every node was started and reaches the first one (network and rendezvous_timeout in the spec), and that no other program uses the port.',
  },
  exit_code: {
    blame: 'job',
    advice: 'Read the end of its output (muster logs): the program exited without a reason.',
  },
  gpu_fault: {
    blame: 'gpu',
    advice: 'Drain the node and reset or replace the GPU; retry elsewhere.',
  },
  node_lost: {
    blame: 'node',
    advice: 'Bring the node back, or confirm that it is gone with muster node confirm-dead; retry elsewhere.',
  },
  preempted: {
    blame: 'platform',
    advice:
      'No action needed: it resumes from its newest checkpoint when GPUs are free (priority and preemptible in the spec).',
  },
  time_limit: {
    blame: 'job',
    advice: 'Allow more time (max_runtime in the spec, or muster extend while it runs), then requeue it.',
  },
  image_pull: {
    blame: 'platform',
    advice: 'Check the name of the image in the spec, and that the nodes may pull it from its registry.',
  },
  command_not_found: {
    blame: 'job',
    advice:
      'Check command and workdir of the spec, and that the program is installed on every node or in the image.',
  },
  checkpoint_conflict: {
    blame: 'job',
    advice:
      'Give the job a checkpoint.dir of its own, or submit it with --resume-from to continue from the checkpoints that are there.',
  },
  rendezvous_timeout: {
    blame: 'network',
    advice:
      'Check that the nodes reach each other (network in the spec), or allow more time (rendezvous_timeout).',
  },
  hung: {
    blame: 'unknown',
    advice:
      'Check what the rank that stopped first was doing; if such long pauses are expected, raise on_hang.times or on_hang.at_least.',
  },
  artifact_store: {
    blame: 'storage',
    advice:
      'Check that the store is up and that the nodes reach endpoint under artifacts; then run the pipeline again from this step: muster pipeline rerun RUN.',
  },
  artifact_refused: {
    blame: 'job',
    advice:
      'Correct url, region or secret under artifacts, or what the key may do in the bucket; then run the pipeline again from this step.',
  },
  artifact_invalid: {
    blame: 'job',
    advice:
      'Run the step again that makes the artifact (muster pipeline rerun RUN --from STEP), and check that its program leaves what its outputs say.',
  },
  container_engine: {
    blame: 'node',
    advice:
      'Look at the container engine of that node (systemctl status docker, journalctl -u docker); Muster retries on other nodes first.',
  },
  phase_unmet: {
    blame: 'job',
    advice:
      'Change success, unmet or steps of the phase in the job file, then muster submit --resume-from JOB -f FILE: it continues in that phase.',
  },
  cancelled: {
    blame: 'platform',
    advice: 'It was cancelled by a user; muster requeue runs it again.',
  },
  unknown: {
    blame: 'unknown',
    advice: 'The cause is unknown: read the end of its output (muster logs) and the events of its node.',
  },
};
