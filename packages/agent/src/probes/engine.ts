/** Is a container engine answering here? Asked at every connect, so that Docker may come and go. */
import { request } from 'node:http';

const answerTimeoutMs = 2_000;

/** @param socketPath of the Docker Engine API */
export function engineAnswers(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const ping = request({ socketPath, path: '/_ping', timeout: answerTimeoutMs }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    ping.once('timeout', () => ping.destroy());
    ping.once('error', () => resolve(false));
    ping.once('close', () => resolve(false));
    ping.end();
  });
}
