import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

const module = JSON.stringify(join(import.meta.dirname, 'endProcess.ts'));

/** @returns its exit code and what it wrote to its standard output */
async function runProgram(program: string) {
  const argv = ['--input-type=module', '-e', `import { endProcess } from ${module};\n${program}`];
  const child = spawn(process.execPath, argv, { stdio: ['pipe', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let stdout = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  const [exitCode] = await once(child, 'close');
  return { exitCode: exitCode as number | null, stdout };
}

const workAfter = "setImmediate(() => console.log('still collects')); setInterval(() => {}, 1_000);";

test('a short process ends at once, whatever is open', async () => {
  expect(await runProgram(`${workAfter} endProcess(4, 10)`)).toEqual({ exitCode: 4, stdout: '' });
});

test('a long one turns its event loop once more, and ends whatever is open', async () => {
  const ended = await runProgram(`${workAfter} endProcess(5, 60_000)`);
  expect(ended).toEqual({ exitCode: 5, stdout: 'still collects\n' });
});
