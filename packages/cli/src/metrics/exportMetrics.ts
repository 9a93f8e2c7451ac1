/** The rows of jobs for programs: `muster metrics -o csv` and `-o json`. */
import type { MetricsView } from '@muster/common/telemetry';
import type { MetricsQuery, MusterApi } from '@muster/common/wire/client';
import type { Output } from '../io.ts';
import { writeJson } from '../output/json.ts';
import { csvOf, type ExportedMetric } from './exports.ts';
import { queryAll } from './queries.ts';

export interface Exported {
  readonly ids: readonly string[];
  readonly names: readonly MetricsQuery['name'][];
  /** Of a single job it is the answer itself. */
  readonly isOneMetric: boolean;
  readonly range: Pick<MetricsQuery, 'sinceMs' | 'attempt'>;
}

/** Of one text of CSV: a million lines would be more than a string may hold. */
const linesAtOnce = 10_000;

export async function exportMetrics(
  output: Output,
  api: Pick<MusterApi, 'queryMetrics'>,
  { ids, names, isOneMetric, range }: Exported,
  format: 'csv' | 'json',
): Promise<void> {
  const read = async (jobId: string): Promise<readonly ExportedMetric[]> => {
    const metrics: ExportedMetric[] = [];
    for (const name of names)
      metrics.push({ jobId, name, view: await queryAll(api, { jobId, name, ...range }) });
    return metrics;
  };
  if (format === 'csv') {
    for (const [position, id] of ids.entries()) {
      const lines = csvOf(await read(id)).slice(position === 0 ? 0 : 1);
      for (let from = 0; from < lines.length; from += linesAtOnce)
        await output.write(`${lines.slice(from, from + linesAtOnce).join('\n')}\n`);
    }
    return;
  }
  const byJob: [string, Readonly<Record<string, MetricsView>>][] = [];
  for (const id of ids)
    byJob.push([id, Object.fromEntries((await read(id)).map(({ name, view }) => [name, view]))]);
  const [only, ...others] = byJob;
  if (only === undefined || others.length > 0) await writeJson(output, Object.fromEntries(byJob));
  else await writeJson(output, isOneMetric ? Object.values(only[1])[0] : only[1]);
}
