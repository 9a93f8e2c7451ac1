/** Gives the space of a part of a file back while somebody writes to its end: sizes and positions stay as they are. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';

/**
 * By util-linux's fallocate, in a process of its own: a large file takes the kernel a while, and fences must not wait.
 * @param file a descriptor of it
 * @throws {Error} when this file system cannot do it, or there is no such program
 */
export async function punchHole(file: number, from: number, to: number): Promise<void> {
  const range = ['--punch-hole', '--offset', String(from), '--length', String(to - from)];
  const child = spawn('fallocate', [...range, '/proc/self/fd/3'], {
    stdio: ['ignore', 'ignore', 'pipe', file],
    env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
  });
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(0, 500);
  });
  const [status] = await once(child, 'close');
  if (status !== 0)
    throw new Error(`fallocate could not drop a part of an output: ${said.trim() || `status ${status}`}`);
}
