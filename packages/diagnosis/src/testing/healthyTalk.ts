/**
 * What programs say while all is well, in words that also stand where something has failed. Written by the vocabulary of
 * each program, one block per occasion; `---` parts them.
 */
export const healthyTalk: readonly string[] = `
node-1:101:433 [0] NCCL INFO [Service thread] Connection closed by localRank 0
---
node-1:101:433 [7] NCCL INFO [Service thread] Connection closed by localRank 7
node-1:101:101 [7] NCCL INFO comm 0x55aa nranks 8 rank 7 - Abort COMPLETE
---
node-1:101:433 [0] NCCL INFO comm 0x7f00 rank 3 nRanks 16 - Destroy COMPLETE
---
node-1:101:433 [2] NCCL INFO NET/IB : Got completion with status=0 opcode=2 len=0 vendor_err=0
---
mlx5: node-1: got completion with status 0
---
node-1:101:433 [2] NCCL INFO misc/socket.cc:64 -> 3
node-1:101:433 [2] NCCL INFO misc/socket.cc:752 -> 3
---
node-1:101:433 [2] NCCL INFO NCCL_IB_TIMEOUT set by environment to 22.
---
node-1:101:433 [2] NCCL INFO Failed to open libibverbs.so[.1]
node-1:101:433 [2] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>
---
node-1:101:433 [2] NCCL INFO cudaDriverVersion 12020
node-1:101:433 [2] NCCL INFO TUNER/Plugin: Failed to find ncclTunerPlugin_v2 symbol, using internal tuner.
---
node-1:101:433 [1] NCCL INFO dmabuf mr is not supported, connection refused by the plugin, falling back to nv_peer_mem
---
node-1:101:433 [1] NCCL TRACE Socket recv got 0 bytes, Connection closed by remote peer
---
node-1:101:433 [0] NCCL WARN Could not find: AMD CPU(s) may need iommu=pt
---
node-1:101:433 [0] NCCL WARN NET/OFI Unable to find a protocol that worked. Failed initialization
node-1:101:433 [0] NCCL INFO Using network Socket
---
node-1:101:433 [0] NCCL WARN NCCL_SOCKET_IFNAME is set to an interface that is down, 1 of 2 used
---
NCCL version 2.20.5+cuda12.4
---
[W socket.cpp:436] [c10d] The server socket cannot be initialized on [::]:29500 (errno: 97 - Address family not supported by protocol).
---
[rank0]:[W1024 10:00:00.1 ProcessGroupNCCL.cpp:1115] Warning: WARNING: process group has NOT been destroyed before we destruct ProcessGroupNCCL.
---
[I ProcessGroupNCCL.cpp:720] [Rank 0] NCCL watchdog thread started! TIMEOUT(ms): 1800000, USE_HIGH_PRIORITY_STREAM: 0
---
[rank3]:[I ProcessGroupNCCL.cpp:834] [Rank 3] ProcessGroupNCCL environments: NCCL_ASYNC_ERROR_HANDLING: 1, NCCL_DESYNC_DEBUG: 0, NCCL_BLOCKING_WAIT: 0
---
[I ProcessGroupNCCL.cpp:912] [PG 0 Rank 1] Heartbeat monitor thread started, TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC: 600
---
[W TCPStore.cpp:106] [c10d] recvValueWithTimeout is deprecated, use recvValue
---
INFO:torch.distributed.elastic.rendezvous.dynamic_rendezvous: The node 'a_1_0' attempts to join the next round of the rendezvous 'job'.
---
INFO:torch.distributed.elastic.multiprocessing.errors: @record is on, error file: /tmp/torchelastic_a/attempt_0/0/error.json
---
*****************************************
Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your system being overloaded.
*****************************************
---
WARNING:torch.distributed.run: --use_env is deprecated; failures are not affected
---
torch.cuda.OutOfMemoryError is handled: batches that do not fit are halved
---
[batch finder] CUDA out of memory at batch size 64; trying 32
---
Trying batch size 128: RuntimeError('CUDA out of memory') was caught
Trying batch size 64
---
WARNING - CUDA out of memory. Tried to allocate 2.00 GiB. Retrying with half the batch
---
| WARNING: ran out of memory with exception: CUDA out of memory. Tried to allocate 3.00 GiB (GPU 0; 15.78 GiB total capacity);
---
W tsl/framework/bfc_allocator.cc:296] Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.13GiB. The caller indicates that this is not a failure
---
XLA_PYTHON_CLIENT_MEM_FRACTION=0.95 RESOURCE_EXHAUSTED is retried 3 times
---
max_split_size_mb=512 set against fragmentation (see CUDA out of memory in the manual)
---
memory: peak 71.2 GiB, OOM margin 8.1 GiB, cudaMalloc retries: 0, OOMs: 0
---
PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True oom_score_adj=0 oom_kill 0
---
cgroup memory.events: low 0 high 0 max 12 oom 0 oom_kill 0
---
slurmstepd: info: Detected 0 oom_kill events in StepId=1.0
---
host memory 412 GiB of 1008 GiB, oom-killer is quiet, Killed: 0
---
(raylet) [2024-01-05 10:00:00,000 I 1 1] node_manager.cc:3007: 0 Workers (tasks / actors) killed due to memory pressure (OOM), 4 workers running
---
(pid=gcs_server) [2024-01-05 10:00:00 I] gcs_actor_manager.cc: ActorDiedError will be raised for dead actors: none
---
(autoscaler +5s) Tip: use ray status to view detailed cluster status. To disable these messages, set RAY_SCHEDULER_EVENTS=0.
---
(raylet) WARNING: 32 PYTHON worker processes have been started. This could be a result of using a large number of actors.
---
2024-01-05 10:00:00,000 INFO worker.py:1724 -- Started a local Ray instance. View the dashboard at 127.0.0.1:8265
---
max_restarts=3 max_task_retries=-1 retry_exceptions=[ray.exceptions.RayActorError]
---
Exception ignored in: <function _ConnectionBase.__del__ at 0x7f>
Traceback (most recent call last):
  File "/usr/lib/python3.11/multiprocessing/connection.py", line 132, in __del__
    self._close()
OSError: [Errno 9] Bad file descriptor
---
--- Logging error ---
Traceback (most recent call last):
  File "/usr/lib/python3.11/logging/__init__.py", line 1110, in emit
    stream.write(msg + self.terminator)
UnicodeEncodeError: 'ascii' codec can't encode character
---
WARNING:transformers: flash attention is not there:
Traceback (most recent call last):
  File "/opt/venv/lib/python3.11/site-packages/transformers/utils/import_utils.py", line 9, in is_there
    import flash_attn
ModuleNotFoundError: No module named 'flash_attn'
---
wandb: WARNING Retrying after the upload failed:
Traceback (most recent call last):
  File "/opt/venv/lib/python3.11/site-packages/urllib3/connection.py", line 174, in _new_conn
    conn = connection.create_connection(
ConnectionRefusedError: [Errno 111] Connection refused
---
Traceback (most recent call last):
  File "/opt/venv/lib/python3.11/site-packages/requests/adapters.py", line 532, in send
    raise ReadTimeout(e, request=request)
requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='api', port=443): Read timed out. (read timeout=10)
wandb: Network error (ReadTimeout), entering retry loop.
---
Traceback (most recent call last):
  File "/srv/data/shards.py", line 40, in fetch
    blob = bucket.get(key)
botocore.exceptions.EndpointConnectionError: Could not connect to the endpoint URL
fetch of shard 17 failed, trying again in 2 s (1 of 5)
---
Traceback (most recent call last):
  File "/srv/data/tar.py", line 12, in samples
    image = decode(blob)
PIL.UnidentifiedImageError: cannot identify image file
sample 4711 skipped
---
Exception in thread Thread-3 (heartbeat):
Traceback (most recent call last):
  File "/usr/lib/python3.11/threading.py", line 1045, in _bootstrap_inner
    self.run()
TimeoutError: the statistics server is away
---
Task exception was never retrieved
future: <Task finished name='Task-9' coro=<upload() done> exception=TimeoutError()>
---
/opt/venv/lib/python3.11/site-packages/torch/amp/grad_scaler.py:12: UserWarning: torch.cuda.amp.GradScaler is enabled, but CUDA is not available. Disabling.
---
UserWarning: Detected call of lr_scheduler.step() before optimizer.step(). Failure to do this will result in PyTorch skipping the first value
---
/srv/train.py:9: RuntimeWarning: invalid value encountered in divide
---
RuntimeWarning: Mean of empty slice; nan is returned
---
FutureWarning: torch.load with weights_only=False; UnpicklingError will be raised by default
---
terminate on NaN: on, detect_anomaly: off, skip_nan_steps: 3
---
model: NaNoNet-XL, loss: smooth_l1, check_for_nan_in_loss_and_grad ............. True
---
eval: {'accuracy': 0.71, 'perplexity': inf, 'bleu': nan, 'rouge': nan}
---
metrics: {"val/rare_class_f1": NaN, "val/acc": 0.8}
---
per-class AP: cat 0.71 dog 0.65 unicorn nan
---
skipped 0 batches with nan, 0 with inf, grad overflow count 0
---
[deepspeed] fp16 dynamic loss scale: initial 65536, min 1, hysteresis 2, window 1000
---
[2024-01-05 10:00:00,000] [INFO] [loss_scaler.py:190:update_scale] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768
---
Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32768.0
---
[2024-01-05 10:00:00,000] [WARNING] [lr_schedules.py:683:get_lr] Attempting to get learning rate from scheduler before it has started
---
[2024-01-05 10:00:00,000] [INFO] [config.py:997:print]   dump_state ................... False
[2024-01-05 10:00:00,000] [INFO] [config.py:997:print]   elasticity_enabled ........... False
[2024-01-05 10:00:00,000] [INFO] [config.py:997:print]   nebula_config ................ {"enabled": false, "persistent_time_interval": 100}
---
[2024-01-05 10:00:00,000] [INFO] [launch.py:347:main] Process 4712 exits successfully is what a good end says
---
------------------------ arguments ------------------------
  distributed_timeout_minutes ..................... 10
  exit_on_missing_checkpoint ...................... True
  exit_signal_handler ............................. False
  rerun_mode ...................................... disabled
  error_injection_rate ............................ 0
-------------------- end of arguments ---------------------
---
WARNING: could not find the metadata file /ckpt/latest_checkpointed_iteration.txt
    will not load any checkpoints and will start from random
---
> building shared memory buffers of 64 GiB in /dev/shm, No space is left out
---
df: /dev/shm 503G 1.2G 502G 1% no errors
---
disk check: 80 GiB free; stop below 10 GiB because of "No space left on device"
---
checksum of model.safetensors is right; SafetensorError would end it here
---
checkpoint loader: retries 3, on PytorchStreamReader errors the one before is taken
---
| N/A   34C    P0    61W / 400W |      3MiB / 81920MiB |      0%      Default |
|   0  NVIDIA H100 80GB HBM3          On  |   00000000:1B:00.0 Off |                    0 |
---
GPU 0: volatile uncorrectable ECC errors 0, aggregate 0, remapped rows 0, NVLink errors 0
---
dcgm: XID errors 0, PCIe replay 0, uncorrectable ECC error count 0
---
nvidia-smi: the device handle for GPU 0000:02:00.0 is there
---
CUDA_LAUNCH_BLOCKING=0 TORCH_USE_CUDA_DSA=1 compute-sanitizer: 0 errors, illegal memory access: none
---
CUDA error checks are on; device-side assertions are compiled in
---
GPU 3 throttled for 2 s (SW power cap), no hardware failure
---
Signal handlers: SIGTERM saves, SIGINT saves twice, death signals are passed on
---
closing signal for workers is SIGTERM, grace 30 s
---
SLURM_JOB_ID=17 srun: Job step 17.0 started, CANCELLED jobs are requeued
---
scontrol: JobState=RUNNING Reason=None ExitCode=0:0 Requeue=1
---
warning: 3 tests failed to import in an optional suite: No module named pytest_benchmark
---
symbol lookup is lazy (LD_BIND_NOW is not set), shared libraries: 212
---
import errors of optional packages: apex, xformers, transformer_engine
---
No module named 'triton' : torch.compile falls back to eager
---
A matching Triton is not available, some optimizations will not be enabled. Error caught was: No module named 'triton'
---
torch._dynamo hit config.recompile_limit (8); function: 'forward'; last reason: 0/0: tensor size mismatch
---
[WARNING] async_io requires the dev libaio .so object and headers but these were not found.
---
Error in cpuinfo: prctl(PR_SVE_GET_VL) failed
---
E0000 00:00:1704448800.123456 12 cuda_dnn.cc:8310] Unable to register cuDNN factory: one has already been registered
---
I0000 00:00:1704448800.123456 12 coordination_service_agent.cc:369] Coordination agent has successfully connected.
---
jax.distributed.initialize: heartbeat timeout 100 s, shutdown barrier 300 s, max missing heartbeats 10
---
Num steps until a timeout: 0; failed workers: []; dead nodes: []; lost ranks: none
---
error_rate 0.021 word_error 4.0 mean_absolute_error 0.12 exit_loss 0.3 failure_rate 0.0
---
loss/error_l1: 0.42, Exception count: 0, Failure modes: 0
---
raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")
---
    except torch.cuda.OutOfMemoryError: # CUDA error: an illegal memory access was encountered
---
# Watchdog caught collective operation timeout: then all ranks are restarted
---
# if the loss is nan the run is stopped after training is completed
---
        raise ValueError("uncorrectable ECC error encountered")
---
if dist.is_initialized(): # NCCL error, Connection reset by peer
    dist.destroy_process_group() # after training is done
---
"""Runs until Training is completed."""
---
print("Training completed")
---
msg = "RuntimeError: CUDA error: unspecified launch failure"
---
logger.error("Loss is nan, stopping training")
---
assert not failed, "[Errno 28] No space left on device"
---
evaluation of the previous stage: training is completed, evaluation goes on
---
the pretraining has finished 3 of 4 stages
---
verl: actor_rollout_ref.rollout.gpu_memory_utilization=0.6 ray_init.timeout=300 trainer.critic_warmup=0
---
(WorkerDict pid=77) INFO 01-05 10:00:00 worker.py:267] the current vLLM instance can use total_gpu_memory (79.15GiB) x 0.60
---
(WorkerDict pid=77) WARNING 01-05 10:00:00 cumem.py:22] sleep mode is on, CUDA Error codes are checked
---
[aim] run is tracked; on connection refused metrics are kept in a file
---
huggingface_hub: 503 Server Error, retry 1 of 5; then 200 OK
---
tokenizers: The current process just got forked, after parallelism has already been used. Disabling parallelism to avoid deadlocks...
---
Special tokens have been added in the vocabulary, make sure the associated word embeddings are fine-tuned or trained.
---
Some weights of the model were not initialized from the checkpoint and are newly initialized: ['score.weight']
`
  .trim()
  .split('\n---\n');
