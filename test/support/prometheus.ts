/** A real Prometheus of the distribution, and its tool that checks pages and configurations. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort, prometheusPrograms, waitFor } from './services.ts';

/** @returns what `promtool check metrics` has to say of a page; empty: it is clean */
export function promtoolErrors(page: string): Promise<string> {
  return promtool(['check', 'metrics'], page);
}

/** @returns what `promtool check config` has to say; empty: it is clean */
export function configErrors(path: string): Promise<string> {
  return promtool(['check', 'config', path], '');
}

function promtool(args: readonly string[], input: string): Promise<string> {
  return new Promise((resolve) => {
    const child = execFile(prometheusPrograms().promtool, args, (error, stdout, stderr) => {
      resolve(error === null ? '' : `${stdout}${stderr}` || error.message);
    });
    // It may have given up on the page before its end.
    child.stdin?.on('error', () => {});
    child.stdin?.end(input);
  });
}

export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Prometheus {
  /** `http://host:port`. */
  readonly url: string;
  /** Where its configuration is. */
  readonly configPath: string;
  /** What an instant query answers now. */
  query(promQl: string): Promise<readonly Sample[]>;
  /** Health of every target it scrapes, by instance. */
  targets(): Promise<Readonly<Record<string, string>>>;
  /** Ends it and waits until it is gone. */
  stop(): Promise<void>;
}

/**
 * One that finds its targets by HTTP service discovery and scrapes them every second; ready when this resolves.
 * @param discoveryUrl asked every second
 * @param workDir an empty folder for its configuration and data
 * @param port default: a free one
 */
export async function startPrometheus(
  discoveryUrl: string,
  workDir: string,
  port?: number,
): Promise<Prometheus> {
  const configPath = join(workDir, 'prometheus.yml');
  mkdirSync(workDir, { recursive: true });
  writeFileSync(configPath, configFor(discoveryUrl));
  const address = `127.0.0.1:${port ?? (await freePort())}`;
  const child = spawn(
    prometheusPrograms().prometheus,
    [
      `--config.file=${configPath}`,
      `--storage.tsdb.path=${join(workDir, 'data')}`,
      `--web.listen-address=${address}`,
      '--log.level=warn',
    ],
    { cwd: workDir, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  let log = '';
  child.stderr.on('data', (chunk: Buffer) => (log = (log + chunk.toString()).slice(-8_000)));
  const get = async (path: string) => {
    const answer = await fetch(`http://${address}${path}`);
    if (!answer.ok) throw new Error(`prometheus answered ${answer.status}: ${await answer.text()}`);
    return answer;
  };
  try {
    await waitFor(
      'prometheus is ready',
      async () => {
        if (child.exitCode !== null) throw new Error(`prometheus ended with ${child.exitCode}:\n${log}`);
        return (await get('/-/ready')).ok;
      },
      { intervalMs: 100 },
    );
  } catch (error) {
    await end(child);
    throw error;
  }
  return {
    url: `http://${address}`,
    configPath,
    async query(promQl) {
      const answer = await get(`/api/v1/query?query=${encodeURIComponent(promQl)}`);
      const { data } = (await answer.json()) as {
        data: { result: { metric: Record<string, string>; value: [number, string] }[] };
      };
      return data.result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }));
    },
    async targets() {
      const { data } = (await (await get('/api/v1/targets?state=active')).json()) as {
        data: { activeTargets: { labels: Record<string, string>; health: string; lastError: string }[] };
      };
      return Object.fromEntries(
        data.activeTargets.map(({ labels, health, lastError }) => [
          labels['instance'] ?? '',
          lastError === '' ? health : `${health}: ${lastError}`,
        ]),
      );
    },
    stop: () => end(child),
  };
}

function configFor(discoveryUrl: string): string {
  return `global:
  scrape_interval: 1s
scrape_configs:
  - job_name: muster
    http_sd_configs:
      - url: ${discoveryUrl}
        refresh_interval: 1s
`;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await gone;
}
