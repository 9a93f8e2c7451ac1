/** The few calls of Docker's Engine API that hosts need. */
import { request } from 'node:http';
import type { Readable } from 'node:stream';
import { dockerSocket } from '../services.ts';

export interface EngineCall {
  readonly body?: object;
  /** A tar archive, instead of a body. */
  readonly archive?: Readable;
  /** Answers that are as good as success, such as 404 to the removal of what is gone. */
  readonly accept?: readonly number[];
}

/**
 * @returns the answer, parsed where it is JSON; null for an answer without content or an accepted failure
 * @throws {Error} with the answer of the engine
 */
export async function engine<T>(method: string, path: string, call: EngineCall = {}): Promise<T | null> {
  const { body, archive, accept = [] } = call;
  const { status, text } = await exchange(await dockerSocket(), method, path, body, archive);
  if (accept.includes(status)) return null;
  // An import that failed half-way is answered with 200, and a line that reports that.
  if (status >= 400 || (archive !== undefined && text.includes('"error"'))) {
    throw new Error(`the container engine refused ${method} ${path} (${status}): ${text.trim()}`);
  }
  return text.trim() === '' || archive !== undefined ? null : (JSON.parse(text) as T);
}

/** @returns the answer to a GET as it is, whatever its status */
export async function engineText(path: string): Promise<string> {
  return (await exchange(await dockerSocket(), 'GET', path, undefined, undefined)).text.trim();
}

function exchange(
  socketPath: string,
  method: string,
  path: string,
  body: object | undefined,
  archive: Readable | undefined,
): Promise<{ status: number; text: string }> {
  const contentType = archive === undefined ? 'application/json' : 'application/x-tar';
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': contentType };
    const outgoing = request({ socketPath, method, path, agent: false, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('error', reject).on('end', () => resolve({ status: response.statusCode ?? 0, text }));
    });
    outgoing.on('error', reject);
    if (archive === undefined) outgoing.end(body === undefined ? undefined : JSON.stringify(body));
    else archive.on('error', reject).pipe(outgoing);
  });
}
