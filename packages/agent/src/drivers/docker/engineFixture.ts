/** A container engine of canned answers behind a real socket, for what a real one does only by chance, and a driver for it. */
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { silentLogger } from '@muster/common/log';
import { onTestFinished } from 'vitest';
import { tempDir } from '../../../../../test/support/services.ts';
import { RecordingFence } from '../recordingFence.ts';
import { containerDefaults } from './containerPolicy.ts';
import { createDockerDriver } from './dockerDriver.ts';

/** What containers may do, and a data directory that is nobody's. */
const here = { policy: containerDefaults, dataDir: '/var/lib/muster-of-a-test' };

/** Of the driver's agent, which the containers of its tasks name. */
export const agentId = randomUUID();

/** A driver that asks the engine at this socket. */
export function aDriver(socketPath: string) {
  const fence = new RecordingFence();
  const driver = createDockerDriver({
    ...here,
    socketPath,
    agentId,
    bootId: 'boot-1',
    fence,
    log: silentLogger,
  });
  onTestFinished(() => driver.close());
  return driver;
}

export interface FakeEngine {
  readonly socketPath: string;
  /** `POST /images/create`, in order; without version and query. */
  readonly asked: readonly string[];
}

/** How the engine answers a request. */
export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** Answers with this body. */
export const json = (body: object): Answer => {
  return (_request, response) => void response.writeHead(200).end(JSON.stringify(body));
};

/** @param answers what is not among them is not found */
export async function anEngine(answers: Readonly<Record<string, Answer>>): Promise<FakeEngine> {
  const asked: string[] = [];
  const engine = createServer((request, response) => {
    const path = (request.url ?? '').replace(/^\/v[\d.]+/, '').replace(/\?.*/, '');
    const call = `${request.method} ${path}`;
    asked.push(call);
    const answer = answers[call];
    if (answer === undefined) response.writeHead(404).end('{}');
    else answer(request, response);
  });
  const socketPath = join(tempDir('engine').path, 'engine.sock');
  await new Promise<void>((resolve) => engine.listen(socketPath, resolve));
  onTestFinished(() => {
    engine.closeAllConnections();
    engine.close();
  });
  return { socketPath, asked };
}

/** The answer to `GET /version` of an engine that Muster works with. */
export const version = json({
  Version: '20.10.24',
  ApiVersion: '1.41',
  MinAPIVersion: '1.12',
  Components: [],
});
