/** A way from this test into the network of a host. */
import { type ChildProcess, spawn } from 'node:child_process';
import { type AddressInfo, createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { waitFor } from '../services.ts';
import { enterNetwork } from './enter.ts';
import type { Machine } from './machine.ts';

const program = fileURLToPath(new URL('doorwayMain.ts', import.meta.url));

export interface Doorway {
  /** `127.0.0.1:<port>`: leads to the server in the host. */
  readonly address: string;
  close(): void;
}

/** @param port of a server in the host, at its own address */
export async function openDoorway(machine: Machine, port: number): Promise<Doorway> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port: outerPort } = server.address() as AddressInfo;
  const argv = [...enterNetwork(machine), process.execPath, program, machine.address, String(port)];
  const [command = '', ...args] = argv;
  const child: ChildProcess = spawn(command, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  let isOpen = false;
  child.on('message', () => {
    isOpen = true;
  });
  child.send('serve', server);
  await waitFor(`the way into ${machine.name} is open`, () => isOpen || child.exitCode, {
    until: (seen) => seen === true,
  });
  // From now on the other side alone accepts.
  server.close();
  return { address: `127.0.0.1:${outerPort}`, close: () => void child.kill('SIGKILL') };
}
