import type { ExplainView } from '@muster/common/views';
import { formatArrayExplained } from '../arrays/arrayText.ts';
import { showArray } from '../arrays/show.ts';
import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { jobOrArrayHelp, referentOf } from '../jobs/reference.ts';
import { markedState, nameOf } from '../jobs/summary.ts';
import { coloursFor } from '../output/colours.ts';
import { writeJson } from '../output/json.ts';
import { printable, wrapText } from '../output/text.ts';
import { withSession } from '../session.ts';

type ExplainFlags = ConnectionFlags & OutputFlags;

export const command: CommandModule = {
  define(sub) {
    sub.argument('<job>', jobOrArrayHelp);
    withConnection(withOutput(sub));
  },
  run: explainJob,
};

async function explainJob(context: Context, reference: string, flags: ExplainFlags): Promise<ExitCode> {
  return withSession(context, flags, async ({ api }) => {
    const found = await referentOf(api, reference);
    if (found.kind === 'array') return showArray(context, api, found, flags, formatArrayExplained);
    const answer = await api.explainJob(found.id);
    if (flags.output === 'json') await writeJson(context.io.stdout, answer);
    else await context.io.stdout.write(explainedText(answer, context));
    return exitCodes.ok;
  });
}

function explainedText(
  { job, summary, details, nextSteps }: ExplainView,
  { io, environment }: Context,
): string {
  const { bold, dim } = coloursFor(io.stdout, environment);
  const columns = io.stdout.columns();
  const indented = (lines: readonly string[]) =>
    lines.map((line) => `${wrapText(`  ${printable(line)}`, columns, 2)}\n`).join('');
  const heading = `${bold(nameOf(job))}  ${job.id}  ${markedState(job)}`;
  // What to do comes before what it is known from: most people need no more.
  const blocks = [
    `${heading}\n${wrapText(printable(summary), columns)}\n`,
    nextSteps.length === 0 ? '' : `${dim('Next')}\n${indented(nextSteps)}`,
    details.length === 0 ? '' : `${dim('Details')}\n${indented(details)}`,
  ];
  return blocks.filter((block) => block !== '').join('\n');
}
