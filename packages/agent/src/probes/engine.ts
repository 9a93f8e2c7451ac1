/** Is a container engine answering here? Asked at every connect, so that Docker may come and go. */
import { request } from 'node:http';

const answerTimeoutMs = 2_000;

/** `absent`: nothing listens, or it refuses. `silent`: something listens and does not answer. */
export type EngineState = 'answers' | 'absent' | 'silent';

/** @param socketPath of the Docker Engine API */
export async function engineAnswers(socketPath: string): Promise<boolean> {
  return (await engineState(socketPath, answerTimeoutMs)) === 'answers';
}

/**
 * @param socketPath of the Docker Engine API
 * @param deadlineMs for the answer
 */
export function engineState(socketPath: string, deadlineMs: number): Promise<EngineState> {
  return new Promise((resolve) => {
    const ping = request({ socketPath, path: '/_ping', timeout: deadlineMs }, (response) => {
      response.resume();
      resolve(response.statusCode === 200 ? 'answers' : 'absent');
    });
    ping.once('timeout', () => {
      resolve('silent');
      ping.destroy();
    });
    // The queue of connections of a stopped engine fills up, because nobody accepts them.
    ping.once('error', (error: NodeJS.ErrnoException) =>
      resolve(error.code === 'EAGAIN' ? 'silent' : 'absent'),
    );
    ping.once('close', () => resolve('absent'));
    ping.end();
  });
}
