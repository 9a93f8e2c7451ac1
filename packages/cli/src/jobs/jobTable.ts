import { signMarks } from '@muster/common/signText';
import type { JobView } from '@muster/common/views';
import type { Colours, Style } from '../output/colours.ts';
import { type Column, formatTable } from '../output/table.ts';
import { agoText } from '../output/times.ts';
import { markedState, nameOf, needsText, ranText, specOf, stateStyles, whyText } from './summary.ts';

/** What was noticed of a training stands out from a state in which all seems well. */
function stateStyle(job: JobView): Style | null {
  const isMarked = signMarks(job).length > 0 && job.state !== 'failed';
  return isMarked ? 'yellow' : stateStyles[job.state];
}

export function formatJobs(
  jobs: readonly JobView[],
  options: { readonly width: number | null; readonly colours: Colours; readonly nowMs: number },
): string {
  const { nowMs } = options;
  const columns: readonly Column<JobView>[] = [
    { header: 'ID', cell: (job) => job.id },
    { header: 'NAME', cell: nameOf, narrow: { cutTo: 14 } },
    { header: 'STATE', cell: markedState, style: stateStyle },
    { header: 'NEEDS', cell: (job) => needsText(specOf(job).resources), narrow: 'drop' },
    { header: 'SUBMITTED', cell: (job) => agoText(job.submittedAtMs, nowMs), narrow: 'drop' },
    { header: 'RAN', cell: (job) => ranText(job, nowMs), narrow: 'drop' },
    { header: 'WHY', cell: whyText, narrow: { cutTo: 24 } },
  ];
  return formatTable(jobs, columns, options);
}
