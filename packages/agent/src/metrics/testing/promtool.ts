/** Prometheus' own judgement of a page or a file. */
import { spawn } from 'node:child_process';
import { prometheusPrograms } from '../../../../../test/support/services.ts';

export interface Judgement {
  /** 0: nothing to say; 3: it reads well, but names do not follow the recommendations. */
  readonly exitCode: number | null;
  /** Lines of stdout and stderr. */
  readonly lines: readonly string[];
}

/** @throws {MissingServiceError} where there is no promtool */
export function promtool(words: readonly string[], input = ''): Promise<Judgement> {
  const child = spawn(prometheusPrograms().promtool, words, { stdio: ['pipe', 'pipe', 'pipe'] });
  let text = '';
  const collect = (part: string) => {
    text += part;
  };
  child.stdout.setEncoding('utf8').on('data', collect);
  child.stderr.setEncoding('utf8').on('data', collect);
  child.stdin.end(input);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (exitCode) =>
      resolve({ exitCode, lines: text.split('\n').filter((line) => line !== '') }),
    );
  });
}
