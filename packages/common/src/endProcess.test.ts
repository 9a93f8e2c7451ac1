import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';

const module = JSON.stringify(join(import.meta.dirname, 'endProcess.ts'));

/** @param flags of Node @returns its exit code and what it wrote to its standard error */
async function runProgram(program: string, ...flags: readonly string[]) {
  const argv = [...flags, '--input-type=module', '-e', `import { endProcess } from ${module};\n${program}`];
  const child = spawn(process.execPath, argv, { stdio: ['pipe', 'ignore', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const [exitCode] = await once(child, 'close');
  return { exitCode: exitCode as number | null, stderr };
}

test('what is open does not keep it, and where nothing is it ends by itself', async () => {
  const forced = 'WARNING: Exited the environment with code';
  const idle = await runProgram('endProcess(4)', '--trace-exit');
  expect(idle.exitCode).toBe(4);
  expect(idle.stderr).not.toContain(forced);
  const busy = await runProgram('setInterval(() => {}, 1_000); endProcess(5)', '--trace-exit');
  expect(busy.exitCode).toBe(5);
  expect(busy.stderr).toContain(forced);
});
