import type { JobView } from '@muster/common/views';
import type { Colours } from '../output/colours.ts';
import { type Column, formatTable } from '../output/table.ts';
import { agoText } from '../output/times.ts';
import { nameOf, needsText, ranText, specOf, stateStyles, whyText } from './summary.ts';

export function formatJobs(
  jobs: readonly JobView[],
  options: { readonly width: number | null; readonly colours: Colours; readonly nowMs: number },
): string {
  const { nowMs } = options;
  const columns: readonly Column<JobView>[] = [
    { header: 'ID', cell: (job) => job.id },
    { header: 'NAME', cell: nameOf, narrow: { cutTo: 14 } },
    { header: 'STATE', cell: (job) => job.state, style: (job) => stateStyles[job.state] },
    { header: 'NEEDS', cell: (job) => needsText(specOf(job).resources), narrow: 'drop' },
    { header: 'SUBMITTED', cell: (job) => agoText(job.submittedAtMs, nowMs), narrow: 'drop' },
    { header: 'RAN', cell: (job) => ranText(job, nowMs), narrow: 'drop' },
    { header: 'WHY', cell: whyText, narrow: { cutTo: 24 } },
  ];
  return formatTable(jobs, columns, options);
}
