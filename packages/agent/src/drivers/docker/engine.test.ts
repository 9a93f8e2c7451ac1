import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { tempDir } from '../../../../../test/support/services.ts';
import { Engine } from './engine.ts';
import type { PullStep } from './engineAnswers.ts';
import { EngineError, exchange, readTextAnswer } from './engineHttp.ts';
import { withTag } from './image.ts';

const version = { Version: '20.10.24', ApiVersion: '1.41', MinAPIVersion: '1.12', Components: [] };

type Answer = object | ((request: IncomingMessage, response: ServerResponse) => void);

/** Stands in for engines this machine does not have. Unknown paths are answered with 404. */
async function aFakeEngine(answers: Record<string, Answer>): Promise<{ engine: Engine; asked: string[] }> {
  const socketPath = join(tempDir('engine').path, 'engine.sock');
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const path = (request.url ?? '').split('?', 1)[0] ?? '';
    asked.push(`${request.method} ${path}`);
    const answer = answers[path];
    if (typeof answer === 'function') answer(request, response);
    else
      response
        .writeHead(answer === undefined ? 404 : 200)
        .end(JSON.stringify(answer ?? { message: 'not here' }));
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { engine: new Engine(socketPath), asked };
}

describe('Engine', () => {
  it('uses API 1.41 with engines that know it', async () => {
    const { engine, asked } = await aFakeEngine({ '/version': version, '/v1.41/containers/json': [] });
    expect(await engine.listContainers('a=b')).toEqual([]);
    expect(await engine.listContainers('a=b')).toEqual([]);
    expect(asked).toEqual(['GET /version', 'GET /v1.41/containers/json', 'GET /v1.41/containers/json']);
  });

  it('uses the oldest API of engines that have forgotten 1.41', async () => {
    const { engine } = await aFakeEngine({
      '/version': { ...version, ApiVersion: '1.52', MinAPIVersion: '1.44' },
      '/v1.44/containers/json': [],
    });
    expect(await engine.listContainers('a=b')).toEqual([]);
  });

  it('refuses engines that are too old, and says which', async () => {
    const { engine } = await aFakeEngine({
      '/version': { ...version, Version: '18.09.1', ApiVersion: '1.39' },
    });
    await expect(engine.listContainers('a=b')).rejects.toThrow(
      /version 18\.09\.1.*API 1\.39.*20\.10 or newer/,
    );
  });

  it('asks for the version again after the engine was away', async () => {
    const answers: Record<string, Answer> = {
      '/version': version,
      '/v1.41/containers/json': (request) => request.socket.destroy(),
      '/v1.44/containers/json': [],
    };
    const { engine } = await aFakeEngine(answers);
    await expect(engine.listContainers('a=b')).rejects.toThrow('broke');
    answers['/version'] = { ...version, ApiVersion: '1.52', MinAPIVersion: '1.44' };
    expect(await engine.listContainers('a=b')).toEqual([]);
  });

  it('recognises Podman by its components, not by its version', async () => {
    const { engine } = await aFakeEngine({
      '/version': { ...version, Components: [{ Name: 'Podman Engine', Version: '4.3.1' }] },
    });
    expect(await engine.identity()).toMatchObject({ product: 'podman' });
  });

  it.each([
    ['is there', [{ Name: 'docker-init', Version: '0.19.0' }], true],
    ['is listed and missing', [{ Name: 'docker-init', Version: 'N/A' }], false],
    ['is not listed', [], false],
  ])('knows whether the init %s', async (_, Components, hasInit) => {
    const { engine } = await aFakeEngine({ '/version': { ...version, Components } });
    expect(await engine.identity()).toMatchObject({ hasInit });
  });

  it('passes on the words of a refusal', async () => {
    const { engine } = await aFakeEngine({
      '/version': version,
      '/v1.41/containers/c/start': (_, response) =>
        response.writeHead(500).end('{"message":"no space left on device"}'),
    });
    const error = await engine.startContainer('c').catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(EngineError);
    expect(error).toMatchObject({ status: 500, message: 'no space left on device' });
  });

  it('reports a pull that failed after it began', async () => {
    const { engine } = await aFakeEngine({
      '/version': version,
      '/v1.41/images/create': (_, response) => {
        response.write('{"status":"Pulling fs layer","id":"a1"}\r\n{"stat');
        response.end(
          'us":"Downloading"}\n{"errorDetail":{"message":"disk"},"error":"toomanyrequests: slow down"}\n',
        );
      },
    });
    const steps: PullStep[] = [];
    await expect(
      engine.pullImage('trainer:1', (step) => steps.push(step), new AbortController().signal),
    ).rejects.toThrow('toomanyrequests');
    expect(steps).toEqual([
      { id: 'a1', status: 'Pulling fs layer' },
      { id: null, status: 'Downloading' },
    ]);
  });

  it('does not take half a log for a whole one', async () => {
    const { engine } = await aFakeEngine({
      '/version': version,
      '/v1.41/containers/c/logs': (_, response) => {
        response.write('half');
        setImmediate(() => response.destroy());
      },
    });
    const { signal } = new AbortController();
    const read = async () => {
      for await (const piece of engine.readLog('c', { follow: false, signal }))
        expect(piece.toString()).toBe('half');
    };
    await expect(read()).rejects.toMatchObject({ name: 'EngineError', status: null });
  });

  it('gives the reason of an abort as it is', async () => {
    const { engine } = await aFakeEngine({ '/version': version, '/v1.41/containers/c/wait': () => {} });
    const abort = new AbortController();
    const waiting = engine.waitForEnd('c', abort.signal);
    const reason = new Error('enough');
    abort.abort(reason);
    await expect(waiting).rejects.toBe(reason);
  });

  it('does not wait for ever for an engine that hangs', async () => {
    const { engine } = await aFakeEngine({ '/version': () => {} });
    const call = { method: 'GET', path: '/version', deadlineMs: 20 } as const;
    await expect(exchange(engine.socketPath, '', call, readTextAnswer)).rejects.toThrow(
      `the container engine at ${engine.socketPath} gave no answer to GET /version within 0.02 s`,
    );
  });

  it('names the socket and the remedy when there is no engine', async () => {
    const socketPath = join(tempDir('engine').path, 'missing.sock');
    await expect(new Engine(socketPath).identity()).rejects.toThrow(
      `there is no socket ${socketPath}; start it with \`systemctl start docker\``,
    );
  });
});

describe('withTag', () => {
  it.each([
    ['trainer', 'trainer:latest'],
    ['localhost:5000/team/trainer', 'localhost:5000/team/trainer:latest'],
    ['nvcr.io/nvidia/pytorch:24.01-py3', 'nvcr.io/nvidia/pytorch:24.01-py3'],
    ['trainer@sha256:0123', 'trainer@sha256:0123'],
  ])('completes %s', (image, complete) => {
    expect(withTag(image)).toBe(complete);
  });
});
