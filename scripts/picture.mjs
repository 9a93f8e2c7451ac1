// `npm run picture`: runs the commands below against a real cluster with simulated GPUs, in a terminal of 100 columns, and
// draws what they print as docs/terminal.svg, the picture of the README. Temporary folders are shown by their usual names.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { capture, endAllNaming, endChild, hasEnded, interruption } from './processes.mjs';
import { prepare, root } from './setup.mjs';
import { screenOf, svgOf, wrapped } from './svg.mjs';
import { exitWith, Stop, step } from './terminal.mjs';

const columns = 100;
const startupMs = 30_000;
const target = 'docs/terminal.svg';

/**
 * The commands, and which of their lines the picture omits: those that only repeat others or do not fit.
 * @type {readonly { args: readonly string[], hidden: RegExp }[]}
 */
const scenes = [
  {
    args: ['submit', '--follow', '-f', 'examples/recovery.yaml'],
    hidden: /iter (1|\d*[1-46-9]0):|saving checkpoint|training complete|lost rank|ready$/,
  },
  {
    args: ['job', 'latest'],
    hidden: /^(Command|Directory|Priority|Limits|Submitted|GPUs|RANK| {3}\d|Next| {6}|$)/,
  },
];

void exitWith(async () => {
  await prepare(import.meta.url);
  const { build } = await import('./build.mjs');
  await build();
  const dataDir = mkdtempSync(join(tmpdir(), 'muster-picture-'));
  const interrupted = interruption();
  const env = {
    ...process.env,
    MUSTER_DATA: dataDir,
    XDG_STATE_HOME: join(dataDir, 'state'),
    PATH: `${root.replace(/\/$/, '')}:${process.env.PATH ?? ''}`,
    TERM: 'xterm',
    LANG: 'C.UTF-8',
  };
  const upArgs = ['up', '--nodes', '2', '--gpus', '2', '--port', '0', '--data', dataDir];
  const up = spawn('muster', upArgs, { cwd: root, env, detached: true, stdio: 'ignore' });
  try {
    await step('Starting a cluster', () => untilReady(up, env, interrupted));
    const lines = [];
    for (const { args, hidden } of scenes) {
      const command = `muster ${args.join(' ')}`;
      const printed = await step(command, () => runInTerminal(command, env));
      const shown = screenOf(withoutThisMachine(printed, dataDir)).filter(
        (line) => !hidden.test(line.map(({ text }) => text).join('')),
      );
      lines.push([
        { text: '$ ', style: 'prompt' },
        { text: command, style: 'bold' },
      ]);
      lines.push(...shown.flatMap((line) => wrapped(line, columns)), []);
    }
    writeFileSync(join(root, target), svgOf(lines.slice(0, -1), columns));
  } finally {
    await endChild(up, 20_000);
    await endAllNaming(dataDir, 3_000);
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }
  process.stderr.write(`Drew ${target}.\n`);
  return 0;
});

/**
 * @param {import('node:child_process').ChildProcess} up
 * @param {NodeJS.ProcessEnv} env
 * @param {AbortSignal} interrupted
 */
async function untilReady(up, env, interrupted) {
  const deadlineMs = performance.now() + startupMs;
  for (;;) {
    interrupted.throwIfAborted();
    if (hasEnded(up)) throw new Stop('`muster up` ended before it was ready.');
    if (performance.now() > deadlineMs) throw new Stop('`muster up` was not ready in time.');
    const { code, output } = await capture('muster', ['nodes'], { cwd: root, env });
    if (code === 0 && (output.match(/online/g) ?? []).length === 2) return;
    await delay(100);
  }
}

/** @param {string} command @param {NodeJS.ProcessEnv} env @returns {Promise<string>} with control sequences */
async function runInTerminal(command, env) {
  const inTerminal = `stty cols ${columns} rows 50; exec ${command}`;
  const { code, output } = await capture('script', ['-qec', inTerminal, '/dev/null'], { cwd: root, env });
  if (code !== 0) throw new Stop(`${output}\n\`${command}\` failed with exit code ${code}.`);
  return output;
}

/** @param {string} printed @param {string} dataDir */
function withoutThisMachine(printed, dataDir) {
  return printed
    .replaceAll(dataDir, '~/.local/share/muster')
    .replaceAll(root.replace(/\/$/, ''), '~/muster')
    .replaceAll(hostname(), 'my-machine');
}
