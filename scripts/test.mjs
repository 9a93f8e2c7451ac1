// `npm test`: installs and starts what the tests need, then runs the checks and every test. Arguments go to vitest and
// leave the checks out: `npm test -- test/e2e/submit.test.ts`, `npm test -- --project unit -t 'gang'`.
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { commandOf, endAllNaming, exitCode, interruption, processesNaming, signalAll } from './processes.mjs';
import { prepare, root } from './setup.mjs';
import { exitWith, Stop } from './terminal.mjs';
import { countTests } from './testReport.mjs';

const reporters = ['default', 'json', join(root, 'test/support/failuresAtOnce.ts')];

void exitWith(async () => {
  await prepare(import.meta.url);
  // Only now: these need what prepare() has installed, and a Node that reads TypeScript.
  const { runChecks, staticChecks } = await import('./check.mjs');
  const { ensureDocker, equipMachine } = await import('./testMachine.mjs');
  const vitestArgs = process.argv.slice(2);
  const interrupted = interruption();

  await equipMachine();
  const stopDocker = await ensureDocker();
  try {
    interrupted.throwIfAborted();
    const checks = vitestArgs.length === 0 ? staticChecks : [];
    const failedChecks = await runChecks(checks, interrupted);
    const tests = await runTests(vitestArgs, interrupted);

    // A check counts as one test, so that the line below never claims success for a run that failed.
    const passed = tests.passed + checks.length - failedChecks;
    const failed = tests.failed + failedChecks;
    process.stdout.write(`\nTests: ${passed} passed, ${failed} failed\n`);
    if (tests.skipped > 0) {
      process.stdout.write(
        `${tests.skipped} more need what this machine does not have and no command can bring (captures of real drivers, ` +
          'another kernel): mayDependOnMachine in test/rules/files.test.ts names them, and what covers them here.\n',
      );
    }
    return failed === 0 ? 0 : 1;
  } finally {
    await stopDocker();
  }
});

/**
 * Runs vitest with a temporary folder of its own. Whatever the tests start and store names that folder, so that nothing
 * can stay behind unseen, even after a run that was cut short.
 * @param {readonly string[]} args
 * @param {AbortSignal} interrupted
 */
async function runTests(args, interrupted) {
  // A short name: unix sockets below it must fit into 107 characters.
  const folder = mkdtempSync(join(tmpdir(), 'mt-'));
  // Some tests act as another user, who has to get to what they made for it below.
  chmodSync(folder, 0o711);
  const reportPath = join(folder, 'report.json');
  try {
    const code = await runVitest([...args, `--outputFile.json=${reportPath}`], folder, interrupted);
    interrupted.throwIfAborted();
    if (!existsSync(reportPath)) throw new Stop('vitest ended without a report.');
    const counts = countTests(JSON.parse(readFileSync(reportPath, 'utf8')), code);
    const leftovers = await leftoversOf(folder);
    if (leftovers.length > 0) {
      const commands = leftovers.map((pid) => `  ${pid} ${commandOf(pid)}`).join('\n');
      process.stderr.write(`\nFAIL: these processes outlived the tests that started them:\n${commands}\n`);
    }
    return { ...counts, failed: counts.failed + Math.min(leftovers.length, 1) };
  } finally {
    await endAllNaming(folder, 1_000);
    removeFolder(folder);
  }
}

/**
 * Removes the folder of a run. After a run that was cut short, something may still be mounted in it, or be written by what the
 * kernel has not ended yet: that is said, and does not hide why the run ended.
 * @param {string} folder
 */
function removeFolder(folder) {
  const mounted = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((path) => path.startsWith(`${folder}/`));
  // The innermost first.
  for (const path of mounted.reverse()) spawnSync('umount', ['--lazy', path], { stdio: 'ignore' });
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    process.stderr.write(`The folder of this run could not be removed (${why}): rm -rf ${folder}\n`);
  }
}

/**
 * @param {readonly string[]} args
 * @param {string} temporary
 * @param {AbortSignal} interrupted
 * @returns {Promise<number>} its exit code
 */
function runVitest(args, temporary, interrupted) {
  const program = join(root, 'node_modules/vitest/vitest.mjs');
  return new Promise((resolve) => {
    const vitest = spawn(
      process.execPath,
      [program, 'run', ...reporters.map((each) => `--reporter=${each}`), ...args],
      {
        cwd: root,
        env: {
          ...process.env,
          TMPDIR: temporary,
          // Hundreds of the product's programs are started from their sources: compiled once, each starts four times as fast.
          NODE_COMPILE_CACHE: join(temporary, 'compiled'),
        },
        stdio: 'inherit',
        signal: interrupted,
      },
    );
    vitest.on('error', () => {}); // reports the abort; 'close' follows
    vitest.on('close', (code, signal) => resolve(exitCode(code, signal)));
  });
}

/**
 * What is still there a moment after the tests; some of it may be on its way out. Guards stay by design while they have
 * tasks, and for a while after; one that is asked to leave and does not has a task that nobody ended.
 * @param {string} folder
 */
async function leftoversOf(folder) {
  let pids = processesNaming(folder);
  signalAll(
    pids.filter((pid) => commandOf(pid).includes('--runtime-dir')),
    'SIGTERM',
  );
  for (let round = 0; pids.length > 0 && round < 50; round += 1) {
    await delay(100);
    pids = processesNaming(folder);
  }
  return pids;
}
