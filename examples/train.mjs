#!/usr/bin/env node
/**
 * Data-parallel training with nothing but Node 18 or newer.
 *
 * Every rank holds the same small network and computes gradients on its own share of the data; before each
 * update all ranks add their gradients up over TCP (gang.mjs): what PyTorch's DistributedDataParallel does,
 * small enough to read.
 *
 * It knows its place only through the environment that Muster gives every task (listed in README.md) and runs
 * alone where none is set. Started once per node it is its own launcher; started with RANK it is that rank.
 *
 * The result is a pure function of the flags and the world size: a batch depends on (seed, step, rank) alone,
 * sums are taken in rank order, and a checkpoint holds everything. A run stopped and resumed any number of
 * times ends with the very bits of an undisturbed one; the digest in the last line shows it.
 *
 * Exit status: 0 training complete; 143 stopped on request, work saved; 1 failed; 2 bad flags or environment.
 */
import { fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { constants } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Gang, STOPPED_STATUS, toBytes, toNumbers } from './gang.mjs';

const CHECKPOINT_FORMAT = 'muster-example-train/1';
const MOMENTUM = 0.9;
const SAMPLE_COUNT = 1024;

// name: [default, smallest value, meaning]
const FLAGS = {
  steps: [300, 1, 'updates in all, those of earlier attempts included'],
  batch: [32, 1, 'samples per rank and step'],
  lr: [0.3, 0, 'learning rate'],
  hidden: [16, 1, 'width of the hidden layer'],
  seed: [1, 0, 'seed of data, weights and batches'],
  'save-every': [50, 0, 'steps between checkpoints; 0: only on SIGTERM and at the end'],
  'log-every': [10, 1, 'steps between loss lines'],
  'step-ms': [0, 0, 'simulated compute time of a step, in milliseconds'],
  'rendezvous-timeout': [60, 1, 'seconds for all ranks to meet'],
  'collective-timeout': [120, 1, 'seconds to wait for a silent rank'],
  'fail-at-step': [0, 0, 'fault drill: a rank exits 1 here in attempt 1; 0: never'],
  'fail-rank': [0, 0, 'fault drill: which rank that is'],
};

// ---------------------------------------------------------------------------------------- flags, environment

class UsageError extends Error {}

function toNumber(name, text, smallest, largest = Number.MAX_SAFE_INTEGER) {
  const value = Number(text);
  const right = name === '--lr' ? Number.isFinite(value) : Number.isSafeInteger(value);
  if (right && text.trim() !== '' && value >= smallest && value <= largest) return value;
  const bounded = largest < Number.MAX_SAFE_INTEGER;
  const range = bounded ? `from ${smallest} to ${largest}` : `of at least ${smallest}`;
  throw new UsageError(`${name} must be a number ${range}, not '${text}'`);
}

function readFlags(args) {
  const options = Object.fromEntries(Object.keys(FLAGS).map((name) => [name, { type: 'string' }]));
  let values;
  try {
    values = parseArgs({ args, options: { ...options, help: { type: 'boolean' } } }).values;
  } catch (error) {
    throw new UsageError(`${error.message} (--help lists the flags)`);
  }
  const flags = {};
  for (const [name, [byDefault, smallest, meaning]] of Object.entries(FLAGS)) {
    if (values.help) console.log(`  --${name.padEnd(20)} ${meaning} (default ${byDefault})`);
    flags[name] = toNumber(`--${name}`, values[name] ?? String(byDefault), smallest);
  }
  if (values.help) process.exit(0);
  return flags;
}

function readPlace(env) {
  const read = (name, byDefault, ...range) => toNumber(name, env[name] || String(byDefault), ...range);
  const nodeCount = read('NNODES', 1, 1);
  const ranksPerNode = read('NPROC_PER_NODE', 1, 1);
  const worldSize = read('WORLD_SIZE', nodeCount * ranksPerNode, 1);
  const rank = env.RANK ? read('RANK', 0, 0, worldSize - 1) : null;
  return {
    rank,
    worldSize,
    ranksPerNode,
    node: read('NODE_RANK', Math.floor((rank ?? 0) / ranksPerNode), 0, nodeCount - 1),
    masterAddr: env.MASTER_ADDR || '127.0.0.1',
    masterPort: read('MASTER_PORT', 29500, 1, 65535),
    job: env.MUSTER_JOB_ID || 'local',
    attempt: read('MUSTER_ATTEMPT', 1, 1),
    checkpointDir: env.MUSTER_CHECKPOINT_DIR || null,
    resumeFrom: env.MUSTER_RESUME_FROM || null,
  };
}

// ---------------------------------------------------------------------------------------------- the launcher

/** Starts this node's ranks, hands SIGTERM on, ends all when one fails, exits with the first bad status. */
function launch({ node, ranksPerNode, worldSize }) {
  const running = new Set();
  let status = 0;
  const signalAll = (signal) => {
    for (const child of running) child.kill(signal);
  };
  for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => signalAll('SIGTERM'));

  for (let localRank = 0; localRank < ranksPerNode; localRank += 1) {
    const rank = node * ranksPerNode + localRank;
    const env = { ...process.env, RANK: `${rank}`, LOCAL_RANK: `${localRank}`, WORLD_SIZE: `${worldSize}` };
    const child = fork(fileURLToPath(import.meta.url), process.argv.slice(2), { env });
    running.add(child);
    const ended = (childStatus) => {
      running.delete(child);
      if (childStatus !== 0 && status === 0) {
        status = childStatus;
        signalAll('SIGTERM');
        // After an agreed stop rank 0 may still be saving: how long that may take is the supervisor's to say.
        if (status !== STOPPED_STATUS) setTimeout(() => signalAll('SIGKILL'), 5_000).unref();
      }
      if (running.size === 0) process.exit(status);
    };
    child.on('exit', (code, signal) => {
      if (signal) console.error(`[rank${rank}]: ended by ${signal}`);
      ended(signal ? 128 + constants.signals[signal] : code);
    });
    child.on('error', (error) => {
      console.error(`[rank${rank}]: ${error.message}`);
      if (child.pid === undefined) ended(1); // it never started, so it will not exit
    });
  }
}

// -------------------------------------------------------------------------------------------- data and model

/** Uniform numbers in [0, 1) that depend on `seeds` alone: Marsaglia's xorshift over a mixed start. */
function randomStream(...seeds) {
  let state = 1;
  const next = () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
  for (const seed of seeds) {
    state = Math.imul(state ^ (seed + 1), 0x9e3779b1) || 1; // from 0 xorshift never gets away
    for (let i = 0; i < 4; i += 1) next();
  }
  return next;
}

/** Points on two spirals around each other; the label says on which. */
function makeSamples(seed) {
  const random = randomStream(seed, 1);
  return Array.from({ length: SAMPLE_COUNT }, (_, index) => {
    const label = index % 2;
    const radius = 0.15 + 0.85 * random();
    const angle = Math.PI * (2.5 * radius + label);
    const noise = () => 0.04 * (random() - 0.5);
    return { x: radius * Math.cos(angle) + noise(), y: radius * Math.sin(angle) + noise(), label };
  });
}

/** A network of one hidden layer and its optimizer, in one array of numbers: what ranks share and save. */
class Model {
  constructor({ hidden, seed }) {
    const size = 4 * hidden + 1; // per unit: weights of x and y, bias, weight of its output; then one bias
    this.hidden = hidden;
    this.numbers = new Float64Array(2 + 2 * size); // step, loss, weights, velocities
    this.weights = this.numbers.subarray(2, 2 + size);
    this.velocities = this.numbers.subarray(2 + size);
    const random = randomStream(seed, 2);
    const spread = [3, 3, 2, 1 / Math.sqrt(hidden)];
    for (let i = 0; i < 4 * hidden; i += 1) this.weights[i] = (2 * random() - 1) * spread[i % 4];
  }

  get step() {
    return this.numbers[0];
  }

  get loss() {
    return this.numbers[1];
  }

  /** Adds the sample's gradient to `gradient` and returns its loss, the binary cross-entropy. */
  backward({ x, y, label }, gradient) {
    const { weights } = this;
    const last = 4 * this.hidden;
    const outputs = [];
    let logit = weights[last];
    for (let i = 0; i < last; i += 4) {
      outputs[i] = Math.tanh(weights[i] * x + weights[i + 1] * y + weights[i + 2]);
      logit += weights[i + 3] * outputs[i];
    }
    const slope = 1 / (1 + Math.exp(-logit)) - label;
    for (let i = 0; i < last; i += 4) {
      const inner = slope * weights[i + 3] * (1 - outputs[i] * outputs[i]);
      gradient[i] += inner * x;
      gradient[i + 1] += inner * y;
      gradient[i + 2] += inner;
      gradient[i + 3] += slope * outputs[i];
    }
    gradient[last] += slope;
    return Math.max(logit, 0) - logit * label + Math.log1p(Math.exp(-Math.abs(logit)));
  }

  update(gradient, lr, loss) {
    for (let i = 0; i < gradient.length; i += 1) {
      this.velocities[i] = MOMENTUM * this.velocities[i] + gradient[i];
      this.weights[i] -= lr * this.velocities[i];
    }
    this.numbers[0] += 1;
    this.numbers[1] = loss;
  }
}

// ----------------------------------------------------------------------------------------------- checkpoints

const sha256 = (data) => createHash('sha256').update(data).digest('hex');

function cannotSave(error) {
  throw new Error(`cannot save checkpoints: ${error.message}`);
}

/** All or nothing, also in a power cut: written beside, flushed, renamed, and the rename flushed too. */
async function saveCheckpoint(dir, model, { seed, hidden }) {
  const path = join(dir, `step-${String(model.step).padStart(6, '0')}.json`);
  const unfinished = `${path}.tmp-${process.pid}`;
  const state = toBytes(model.numbers).toString('base64'); // decimal text would lose the sign of -0
  const metrics = { loss: model.loss };
  const content = { format: CHECKPOINT_FORMAT, step: model.step, metrics, seed, hidden, state };
  const text = JSON.stringify({ ...content, sha256: sha256(JSON.stringify(content)) });
  try {
    const file = await open(unfinished, 'w');
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(unfinished, path);
    const directory = await open(dir);
    await directory.sync().finally(() => directory.close());
  } catch (error) {
    await rm(unfinished, { force: true }).catch(() => {}); // the reason to report is the first one
    cannotSave(error);
  }
  console.log(`saving checkpoint to ${path}`); // said when it is true: whoever reads this line finds the file
}

async function loadCheckpoint(path, model, flags) {
  const corrupt = (what) => new Error(`corrupt checkpoint ${path}: ${what}; resume from an older one`);
  const text = await readFile(path, 'utf8').catch((error) => {
    throw new Error(`cannot resume: ${error.message}`);
  });
  let parsed;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw corrupt('it is not JSON, or cut short');
  }
  const { sha256: expected, ...content } = parsed ?? {};
  if (content.format !== CHECKPOINT_FORMAT) throw corrupt(`it is not of format ${CHECKPOINT_FORMAT}`);
  if (sha256(JSON.stringify(content)) !== expected) throw corrupt('its checksum does not match');
  for (const flag of ['seed', 'hidden']) {
    const [then, now] = [content[flag], flags[flag]];
    if (then !== now) throw new Error(`cannot resume: ${path} has --${flag} ${then}, this run has ${now}`);
  }
  model.numbers.set(toNumbers(Buffer.from(content.state, 'base64')));
}

// -------------------------------------------------------------------------------------------------- one rank

async function train(place, flags) {
  const { rank, worldSize, checkpointDir, resumeFrom } = place;
  const end = (status, message) => {
    console.error(`[rank${rank}]: ${message}`);
    process.exit(status);
  };
  const seconds = { meeting: flags['rendezvous-timeout'], silence: flags['collective-timeout'] };
  const gang = new Gang(place, seconds, end);
  let stopRequested = false;
  for (const signal of ['SIGTERM', 'SIGINT']) {
    process.on(signal, () => {
      stopRequested = true;
      gang.stop();
    });
  }
  process.on('disconnect', () => end(1, 'the launcher of this rank is gone'));

  await gang.meet();
  console.log(`rank ${rank}/${worldSize} on node ${place.node} ready`);
  const model = new Model(flags);
  const save = async () => {
    if (rank === 0 && checkpointDir) await saveCheckpoint(checkpointDir, model, flags);
  };
  if (rank === 0) {
    if (resumeFrom) await loadCheckpoint(resumeFrom, model, flags);
    if (checkpointDir) await mkdir(checkpointDir, { recursive: true }).catch(cannotSave);
    const start = resumeFrom ? `resuming from ${resumeFrom} at` : 'starting fresh at';
    const address = `${place.masterAddr}:${place.masterPort}`;
    console.log(`world size ${worldSize}, peers met at ${address}, ${start} step ${model.step}`);
    if (!checkpointDir) console.log('no checkpoints: MUSTER_CHECKPOINT_DIR is not set');
  }
  await gang.begin(model.numbers);

  const samples = makeSamples(flags.seed);
  const sums = new Float64Array(2 + model.weights.length); // wishes to stop, loss, gradient
  const gradient = sums.subarray(2);
  while (model.step < flags.steps) {
    const step = model.step + 1;
    const startedAt = performance.now();
    if (step === flags['fail-at-step'] && rank === flags['fail-rank'] && place.attempt === 1) {
      end(1, `failing at step ${step}, as --fail-at-step asks`);
    }
    sums.fill(0);
    const random = randomStream(flags.seed, 3, step, rank);
    for (let i = 0; i < flags.batch; i += 1) {
      sums[1] += model.backward(samples[Math.floor(random() * SAMPLE_COUNT)], gradient);
    }
    if (flags['step-ms'] > 0) await sleep(flags['step-ms']);
    // The wish to stop travels with the sums: whoever was asked, all stop after the same step.
    sums[0] = stopRequested ? 1 : 0;
    await gang.allReduce(sums);
    for (let i = 1; i < sums.length; i += 1) sums[i] /= flags.batch * worldSize;
    model.update(gradient, flags.lr, sums[1]);

    const last = step === flags.steps;
    if (rank === 0 && (step === 1 || step % flags['log-every'] === 0 || last)) {
      const time = (performance.now() - startedAt).toFixed(2);
      console.log(`iter ${step}: loss ${model.loss.toFixed(4)}, time ${time}ms`);
    }
    if (last) break;
    if (sums[0] > 0) {
      if (rank === 0) console.log(`stopping after step ${step}, as asked`);
      await gang.part(save);
      process.exit(STOPPED_STATUS);
    }
    if (flags['save-every'] > 0 && step % flags['save-every'] === 0) await save();
  }

  await gang.part(save);
  if (rank === 0) {
    const [loss, digest] = [model.loss.toFixed(4), sha256(toBytes(model.weights))];
    console.log(`training complete: step ${model.step} loss ${loss} weights sha256:${digest}`);
  }
  process.exit(0);
}

try {
  const flags = readFlags(process.argv.slice(2));
  const place = readPlace(process.env);
  if (place.rank === null) launch(place);
  else await train(place, flags);
} catch (error) {
  console.error(`${process.env.RANK ? `[rank${process.env.RANK}]: ` : ''}${error.message}`);
  process.exit(error instanceof UsageError ? 2 : 1);
}
