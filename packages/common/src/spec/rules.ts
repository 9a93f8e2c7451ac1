/**
 * What no single field can say: settings that contradict each other or would silently do nothing. The rules look at the
 * spec as it was written, so that they speak up together with wrong fields, not only once those are right.
 */

import { arraySize, parseArray } from './array.ts';
import { indexPlaceholder } from './arrayIndex.ts';
import { parseDurationMs } from './duration.ts';
import { parseVolume } from './forms.ts';
import { isMapping, type SpecPath } from './path.ts';
import { phaseRules } from './phaseRules.ts';
import { isBatchName, namedParameters } from './placeholder.ts';
import type { Finding } from './problems.ts';

type Written = Readonly<Record<string, unknown>>;

/** Of a job that says none. */
const defaultPriority = 50;

export function contradictions(spec: Written): readonly Finding[] {
  return [
    ...commandRules(spec),
    ...containerRules(spec),
    ...resourceRules(spec),
    ...gangRules(spec),
    ...launcherRules(spec),
    ...leaseRules(spec),
    ...retryRules(spec),
    ...batchRules(spec),
    ...checkpointRules(spec),
    ...evaluationRules(spec),
    ...phaseRules(spec),
    ...arrayRules(spec),
  ];
}

function* commandRules({ command, args, image }: Written): Generator<Finding> {
  yield* shellArguments({ command, args }, []);
  const hasArgs = Array.isArray(args) && args.length > 0;
  const absent = isAbsent(command);
  if (absent && image === undefined) {
    const message = command === undefined ? 'missing' : 'got an empty list';
    yield finding(
      ['command'],
      message,
      'the command, such as [torchrun, train.py]; optional only for a job with an image',
    );
  } else if (absent && hasArgs) {
    yield finding(['args'], 'given without a command', 'a command for them, such as [torchrun, train.py]');
  }
}

/** Arguments reach a shell text as "$@" and nothing else: one that never looks at them would drop them without a word. */
function* shellArguments({ command, args }: Written, at: SpecPath): Generator<Finding> {
  const hasArgs = Array.isArray(args) && args.length > 0;
  if (typeof command !== 'string' || !hasArgs || usesArguments(command)) return;
  yield finding(
    [...at, 'args'],
    'ignored by the command, which is text for the shell and never uses "$@"',
    'the command as a list, or "$@" in its text',
  );
}

function isAbsent(command: unknown): boolean {
  return command === undefined || (Array.isArray(command) && command.length === 0);
}

function usesArguments(script: string): boolean {
  return /\$[@*#1-9]|\$\{[@*#1-9]|\b(?:shift|getopts)\b/.test(script);
}

function* containerRules({ image, volumes, resources }: Written): Generator<Finding> {
  const list = Array.isArray(volumes) ? volumes : [];
  if (image === undefined && list.length > 0) {
    yield finding(
      ['volumes'],
      'given without an image',
      'an image; or no volumes, as a process on the node sees the files of the node anyway',
    );
  }
  if (image === undefined && isMapping(resources) && resources['shm_mb'] !== undefined) {
    yield finding(
      ['resources', 'shm_mb'],
      'given without an image',
      'an image; or no shm_mb, as a process on the node uses the /dev/shm of the node',
    );
  }
  const targets = new Map<string, number>();
  for (const [index, text] of list.entries()) {
    const target = typeof text === 'string' ? parseVolume(text)?.target.replace(/\/+$/, '') : undefined;
    if (target === undefined) continue;
    const earlier = targets.get(target);
    if (earlier === undefined) targets.set(target, index);
    else
      yield finding(
        ['volumes', index],
        `mounts over volumes[${earlier}] at ${target}`,
        'a different container path',
      );
  }
}

function* resourceRules({ resources }: Written): Generator<Finding> {
  if (!isMapping(resources) || resources['gpus'] !== undefined) return;
  for (const key of ['gpu_type', 'gpu_memory_mb']) {
    if (resources[key] === undefined) continue;
    yield finding(['resources', key], 'given without gpus', 'how many GPUs each node needs, such as gpus: 1');
  }
}

/** What is about several nodes has nothing to act on where there is one at most. */
function* gangRules({ resources, launcher, network, preflight }: Written): Generator<Finding> {
  const asked = resources ?? {};
  if (!isMapping(asked)) return;
  const { nodes = 1, topology } = asked;
  if (isMapping(nodes) && isBelow(nodes['max'], nodes['min'])) {
    yield finding(['resources', 'nodes', 'max'], 'less than min', 'at least as many as min');
  }
  const isAlone = nodes === 1 || (isMapping(nodes) && nodes['max'] === 1);
  if (!isAlone) return;
  const several = 'resources.nodes of 2 or more';
  if (topology === 'required') {
    const message = 'required of one node, which is always under one switch';
    yield finding(['resources', 'topology'], message, `${several}; or no topology`);
  }
  if (launcher === 'mpi-hostfile') {
    const message = 'given for one node, so there are no others to list';
    yield finding(['launcher'], message, `${several}; or another launcher`);
  }
  if (network !== undefined) {
    const message = 'given for one node, which talks to no other';
    yield finding(['network'], message, `${several}; or no network`);
  }
  if (preflight === true || isMapping(preflight)) {
    const message = 'given for one node, so there are no paths to measure';
    yield finding(['preflight'], message, `${several}; or no preflight`);
  }
}

function isBelow(a: unknown, b: unknown): boolean {
  return typeof a === 'number' && typeof b === 'number' && a < b;
}

/** torchrun starts one rank per GPU by itself: started once per GPU it would start the square of them. */
function* launcherRules({ launcher, command, image }: Written): Generator<Finding> {
  if (launcher !== 'env') return;
  if (image !== undefined && isAbsent(command)) {
    const message = "starts a command once per GPU, and the image's own cannot be seen from outside";
    yield finding(['launcher'], message, 'a command, such as [python, train.py]; or another launcher');
  }
  const program = programOf(command);
  if (program !== 'torchrun') return;
  yield finding(
    ['launcher'],
    `would start ${program} once per GPU, and it starts a rank per GPU itself`,
    'torchrun, once per node; or the training program alone as the command',
  );
}

/** `/opt/bin/torchrun` → `torchrun`; of a text for the shell its first word. */
function programOf(command: unknown): string {
  const first: unknown = typeof command === 'string' ? command.trim().split(/\s+/, 1)[0] : asList(command)[0];
  return typeof first === 'string' ? first.slice(first.lastIndexOf('/') + 1) : '';
}

function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A job that is held through the loss of a node runs without a lease: nothing can run out. */
function* leaseRules({ node_loss, lease, on_lease_expiry }: Written): Generator<Finding> {
  if (node_loss !== 'hold') return;
  const expected = 'node_loss: requeue; or to omit it';
  if (lease !== undefined) {
    yield finding(['lease'], 'given with node_loss: hold, which has no lease', expected);
  }
  if (on_lease_expiry === 'kill') {
    const message = 'given with node_loss: hold, whose lease never expires';
    yield finding(['on_lease_expiry'], message, expected);
  }
}

function* retryRules({ retry }: Written): Generator<Finding> {
  const backoff = isMapping(retry) ? retry['backoff'] : undefined;
  if (!isMapping(backoff)) return;
  const [initial, max] = [backoff['initial'], backoff['max']].map(durationOf);
  if (initial !== null && initial !== undefined && max !== null && max !== undefined && initial > max) {
    yield finding(
      ['retry', 'backoff', 'max'],
      'shorter than the initial wait',
      'at least as long as initial',
    );
  }
}

/** A lower bound needs a size to compare with, which a program that reads MUSTER_BATCH_SCALE keeps to itself. */
function* batchRules({ retry, command, args, params, phases }: Written): Generator<Finding> {
  const least = isMapping(retry) ? retry['batch_min'] : undefined;
  if (typeof least !== 'number') return;
  const path = ['retry', 'batch_min'];
  const texts = [command, args].flat().filter((each) => typeof each === 'string');
  const names = [...namedParameters(texts)].filter(isBatchName);
  if (names.length === 0) {
    const message = 'given, and the command names no batch size to compare with';
    yield finding(path, message, '{batch_size} in the command, with batch_size in params; or no batch_min');
  }
  const phaseParams = asList(phases).map((phase) => (isMapping(phase) ? phase['params'] : undefined));
  const places = [['params', params], ...phaseParams.map((each, index) => [`phases[${index}].params`, each])];
  for (const [place, values] of places) {
    if (!isMapping(values)) continue;
    for (const name of names) {
      const size = Number(values[name] ?? Number.NaN);
      if (!(size < least)) continue;
      yield finding(path, `got ${least}, and ${String(place)}.${name} is ${size}`, `at most ${size}`);
    }
  }
}

/** Without `keep_last` nothing is ever deleted, so there is nothing to keep from that. */
function* checkpointRules({ checkpoint }: Written): Generator<Finding> {
  if (!isMapping(checkpoint) || checkpoint['keep_last'] !== undefined) return;
  for (const key of ['keep_every', 'keep_best']) {
    if (checkpoint[key] === undefined) continue;
    yield finding(
      ['checkpoint', key],
      'given without keep_last, so nothing is ever deleted',
      `keep_last, such as keep_last: 3; or no ${key}`,
    );
  }
}

/** What would evaluate nothing, or before the training that it serves. */
function* evaluationRules({ evaluate, checkpoint, image, priority }: Written): Generator<Finding> {
  if (!isMapping(evaluate)) return;
  const saves = isMapping(checkpoint) ? checkpoint : {};
  const { every, on, command } = evaluate;
  yield* shellArguments(evaluate, ['evaluate']);
  if (isAbsent(command) && command !== undefined)
    yield finding(['evaluate', 'command'], 'got an empty list', 'the command, such as [python, eval.py]');
  if (every === undefined && on === undefined)
    yield finding(
      ['evaluate'],
      'does not say which checkpoints',
      'every, such as every: 2; or on: best; or on: final',
    );
  if (every !== undefined && on !== undefined)
    yield finding(['evaluate', 'on'], 'given with every', 'only one of them');
  if (on === 'best' && saves['keep_best'] === undefined)
    yield finding(
      ['evaluate', 'on'],
      'best, and no metric says which one that is',
      'checkpoint.keep_best, such as keep_best: {metric: eval_loss}, with keep_last',
    );
  if (image !== undefined && saves['dir'] === undefined)
    yield finding(
      ['evaluate'],
      'given for a container without checkpoint.dir, whose checkpoints are not seen',
      'checkpoint.dir on one of its volumes',
    );
  const own = typeof priority === 'number' ? priority : defaultPriority;
  const asked = evaluate['priority'];
  if (typeof asked === 'number' && asked >= own)
    yield finding(
      ['evaluate', 'priority'],
      `got ${asked}, and that of the job is ${own}`,
      'less than the priority of the job, which its evaluations must not delay',
    );
}

/** Elsewhere braces may be anybody's: a shell's, or Python's. */
function* arrayRules({ array, name, workdir, checkpoint }: Written): Generator<Finding> {
  const dir = isMapping(checkpoint) ? checkpoint['dir'] : undefined;
  const usesIndex = (text: unknown) => typeof text === 'string' && text.includes(indexPlaceholder);
  if (array === undefined) {
    const places = new Map<SpecPath, unknown>([
      [['name'], name],
      [['workdir'], workdir],
      [['checkpoint', 'dir'], dir],
    ]);
    for (const [path, text] of places) {
      if (!usesIndex(text)) continue;
      yield finding(
        path,
        `has ${indexPlaceholder}, and this is no array`,
        'an array, such as array: 10; or another text',
      );
    }
    return;
  }
  const reading = typeof array === 'string' || typeof array === 'number' ? parseArray(array) : null;
  if (reading === null || 'expected' in reading || arraySize(reading.array) === 1) return;
  if (typeof dir !== 'string' || usesIndex(dir)) return;
  yield finding(
    ['checkpoint', 'dir'],
    'the same for all jobs of the array, which would overwrite each other',
    `a directory of each, such as ${dir.replace(/\/+$/, '')}/${indexPlaceholder}`,
  );
}

function durationOf(written: unknown): number | null {
  return typeof written === 'string' || typeof written === 'number' ? parseDurationMs(written) : null;
}

function finding(path: SpecPath, message: string, expected: string): Finding {
  return { path, at: 'value', message, expected, suggestion: null };
}
