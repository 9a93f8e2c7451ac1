// `npm run demo`: from a fresh checkout to a finished training job on two simulated nodes, with the very commands that a
// user would type. Leaves nothing behind: no process, no folder, also after Ctrl-C in the middle.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { capture, endAllNaming, endChild, exitCode, hasEnded, interruption } from './processes.mjs';
import { prepare, root, scriptStartedAtMs } from './setup.mjs';
import { exitWith, Stop, secondsSince, step, tail } from './terminal.mjs';

/** As a user in the checkout's root types it, so that every hint can be typed again. */
const muster = './muster';
const jobFile = 'examples/quickstart.yaml';
const readyTimeoutMs = 30_000;
const stopTimeoutMs = 20_000;
const taskGraceMs = 3_000;

void exitWith(async () => {
  const startedAtMs = scriptStartedAtMs();
  await prepare(import.meta.url);
  const { build } = await import('./build.mjs');
  await build();

  const dataDir = mkdtempSync(join(tmpdir(), 'muster-demo-'));
  const interrupted = interruption();
  /** @type {(() => Promise<void>)[]} What was started, to be ended in reverse. */
  const undo = [() => removeAll(dataDir)];
  try {
    await runDemo(dataDir, interrupted, undo);
  } catch (error) {
    if (!interrupted.aborted) showDaemonLogs(dataDir);
    throw error;
  } finally {
    for (const release of undo.toReversed()) await release();
  }
  say(`
Done in ${secondsSince(startedAtMs)}; everything that the demo started has been stopped and removed. To continue on your own:

  ./muster up --nodes 2 --gpus 2          a cluster on this machine; leave it running, type the rest elsewhere
  ./muster submit -f ${jobFile} --follow
  ./muster submit --gpus 1 --follow -- sh -c 'echo "my GPU is $CUDA_VISIBLE_DEVICES"'
  ./muster jobs`);
  return 0;
});

/**
 * @param {string} dataDir
 * @param {AbortSignal} interrupted
 * @param {(() => Promise<void>)[]} undo
 */
async function runDemo(dataDir, interrupted, undo) {
  // The state folder too: `muster up` notes its data directory there, for calls that name none.
  const env = { ...process.env, MUSTER_DATA: dataDir, XDG_STATE_HOME: join(dataDir, 'state') };
  const upArgs = ['up', '--nodes', '2', '--gpus', '2', '--port', '0', '--data', dataDir];
  say(`\n$ ${muster} ${upArgs.join(' ')}`);
  // A session of its own: Ctrl-C must reach the cluster only through the steps of `undo`.
  const up = spawn(muster, upArgs, {
    cwd: root,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let upOutput = '';
  up.stdout.on('data', (chunk) => (upOutput += chunk));
  up.stderr.on('data', (chunk) => (upOutput += chunk));
  undo.push(() => step('Stopping the cluster', () => endCluster(up)));
  await step('Starting a coordinator and two agents', () =>
    untilReady(up, dataDir, interrupted, () => upOutput),
  );

  await show(['submit', '-f', jobFile, '--follow'], env, interrupted);
  await show(['job', await onlyJob(env)], env, interrupted);
  await show(['nodes'], env, interrupted);
}

/**
 * @param {import('node:child_process').ChildProcess} up
 * @param {string} dataDir
 * @param {AbortSignal} interrupted
 * @param {() => string} upOutput
 */
async function untilReady(up, dataDir, interrupted, upOutput) {
  const deadlineMs = performance.now() + readyTimeoutMs;
  while (!existsSync(join(dataDir, 'connection.json'))) {
    interrupted.throwIfAborted();
    if (hasEnded(up)) throw new Stop(`${tail(upOutput())}\n\n\`muster up\` ended before it was ready.`);
    if (performance.now() > deadlineMs) {
      throw new Stop(`${tail(upOutput())}\n\n\`muster up\` was not ready within ${readyTimeoutMs / 1000} s.`);
    }
    await delay(50);
  }
}

/**
 * Runs a command as the user would see it.
 * @param {readonly string[]} args
 * @param {NodeJS.ProcessEnv} env
 * @param {AbortSignal} interrupted
 */
async function show(args, env, interrupted) {
  say(`\n$ ${muster} ${args.join(' ')}`);
  const code = await new Promise((resolve) => {
    const child = spawn(muster, args, { cwd: root, env, stdio: 'inherit', signal: interrupted });
    child.on('error', () => {}); // reports the abort; 'close' follows
    child.on('close', (exit, signal) => resolve(exitCode(exit, signal)));
  });
  interrupted.throwIfAborted();
  if (code !== 0) throw new Stop(`\n\`${muster} ${args.join(' ')}\` failed with exit code ${code}.`);
}

/** @param {NodeJS.ProcessEnv} env */
async function onlyJob(env) {
  const { output } = await capture(muster, ['jobs', '-o', 'json'], { cwd: root, env });
  const id = /\bjob_\w+/.exec(output)?.[0];
  if (id === undefined) throw new Stop(`\`${muster} jobs -o json\` lists no job:\n${output}`);
  return id;
}

/** @param {import('node:child_process').ChildProcess} up */
async function endCluster(up) {
  await endChild(up, stopTimeoutMs);
}

/** @param {string} dataDir */
async function removeAll(dataDir) {
  // Tasks and their guards outlive agents by design; this ends them, also after Ctrl-C in the middle of the job.
  await endAllNaming(dataDir, taskGraceMs);
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}

/** @param {string} dataDir */
function showDaemonLogs(dataDir) {
  const logs = readdirSync(dataDir, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.log'),
  );
  for (const name of logs) {
    say(`\n--- the end of ${name}\n${tail(readFileSync(join(dataDir, name), 'utf8'))}`);
  }
}

/** @param {string} text */
function say(text) {
  process.stderr.write(`${text}\n`);
}
