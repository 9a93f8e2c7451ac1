/** Runs the operator's fencing command, such as one that cuts a node's power. Exit code 0 is proof that it is dead. */
import { spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { messageOf } from '@muster/common/errors';
import type { NodeName } from '@muster/common/ids';

export interface FenceRun {
  /** null: it was ended by a signal, or did not start. */
  readonly exitCode: number | null;
  /** The end of what it wrote, for the log. */
  readonly output: string;
}

export type RunFenceCommand = (
  node: NodeName,
  addresses: readonly string[],
  abort: AbortSignal,
) => Promise<FenceRun>;

/** A power controller that does not answer must not hold the next try up for ever. */
const timeoutMs = 120_000;
const outputCharactersMax = 1_000;

/** @param environment what the command finds beside MUSTER_NODE and MUSTER_NODE_ADDRESSES */
export function fenceCommandRunner(
  command: string,
  environment: Readonly<Record<string, string | undefined>>,
): RunFenceCommand {
  return (node, addresses, abort) => {
    const env = { ...environment, MUSTER_NODE: node, MUSTER_NODE_ADDRESSES: addresses.join(' ') };
    return new Promise<FenceRun>((resolve) => {
      // In a group of its own, so that whatever it has started can be ended with it.
      const child = spawn('/bin/sh', ['-c', command], {
        env,
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      let output = '';
      const keep = (chunk: Buffer) => {
        output = (output + chunk.toString()).slice(-outputCharactersMax);
      };
      // Without free descriptors the child has no streams, whatever its type says, and `error` follows.
      const streams: readonly (Readable | undefined)[] = [child.stdout, child.stderr];
      for (const stream of streams) stream?.on('data', keep);
      const kill = () => {
        try {
          if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
        } catch {
          // It has ended in this very moment.
        }
      };
      const timer = setTimeout(kill, timeoutMs);
      abort.addEventListener('abort', kill, { once: true });
      const done = (exitCode: number | null) => {
        clearTimeout(timer);
        abort.removeEventListener('abort', kill);
        // What it left behind would hold them open until it ends.
        for (const stream of streams) stream?.destroy();
        resolve({ exitCode, output: output.trim() });
      };
      child.on('error', (error) => {
        output = error.message;
        done(null);
      });
      // Not `close`: a child that it left behind may hold the pipes for ever.
      child.on('exit', (exitCode) => done(exitCode));
      // Some failures of a spawn are thrown, such as that of too little memory, and others are events.
    }).catch((error: unknown) => ({ exitCode: null, output: messageOf(error) }));
  };
}
