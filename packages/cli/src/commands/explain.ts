import type { ExplainView } from '@muster/common/views';
import { formatArrayExplained } from '../arrays/arrayText.ts';
import { showArray } from '../arrays/show.ts';
import type { CommandModule, Context } from '../context.ts';
import type { ExitCode } from '../exitCodes.ts';
import { jobOrArrayHelp, referentOf } from '../jobs/reference.ts';
import { markedState, nameOf } from '../jobs/summary.ts';
import type { View } from '../output/table.ts';
import { printable, wrapText } from '../output/text.ts';
import { print, type QueryFlags, withQuery } from '../query.ts';
import { withSession } from '../session.ts';

export const command: CommandModule = {
  define(sub) {
    sub.argument('<job>', jobOrArrayHelp);
    withQuery(sub);
  },
  run: explainJob,
};

function explainJob(context: Context, reference: string, flags: QueryFlags): Promise<ExitCode> {
  return withSession(context, flags, async ({ api }) => {
    const found = await referentOf(api, reference);
    if (found.kind === 'array') return showArray(context, api, found, flags, formatArrayExplained);
    return print(context, flags, await api.explainJob(found.id), explainedText);
  });
}

function explainedText({ job, summary, details, nextSteps }: ExplainView, { width, colours }: View): string {
  const { bold, dim } = colours;
  const indented = (lines: readonly string[]) =>
    lines.map((line) => `${wrapText(`  ${printable(line)}`, width, 2)}\n`).join('');
  const heading = `${bold(nameOf(job))}  ${job.id}  ${markedState(job)}`;
  // What to do comes before what it is known from: most people need no more.
  const blocks = [
    `${heading}\n${wrapText(printable(summary), width)}\n`,
    nextSteps.length === 0 ? '' : `${dim('Next')}\n${indented(nextSteps)}`,
    details.length === 0 ? '' : `${dim('Details')}\n${indented(details)}`,
  ];
  return blocks.filter((block) => block !== '').join('\n');
}
