import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { jobReferenceHelp } from '../jobs/reference.ts';
import { markedState, nameOf } from '../jobs/summary.ts';
import { coloursFor } from '../output/colours.ts';
import { writeJson } from '../output/json.ts';
import { printable, wrapText } from '../output/text.ts';
import { withSession } from '../session.ts';

type ExplainFlags = ConnectionFlags & OutputFlags;

export const command: CommandModule = {
  define(sub) {
    sub.argument('<job>', jobReferenceHelp);
    withConnection(withOutput(sub));
  },
  run: explainJob,
};

async function explainJob(context: Context, reference: string, flags: ExplainFlags): Promise<ExitCode> {
  const { io, environment } = context;
  const answer = await withSession(context, flags, async ({ api }) => api.explainJob(reference));
  if (flags.output === 'json') {
    await writeJson(io.stdout, answer);
    return exitCodes.ok;
  }
  const { bold, dim } = coloursFor(io.stdout, environment);
  const columns = io.stdout.columns();
  const indented = (lines: readonly string[]) =>
    lines.map((line) => `${wrapText(`  ${printable(line)}`, columns, 2)}\n`).join('');
  const heading = `${bold(nameOf(answer.job))}  ${answer.job.id}  ${markedState(answer.job)}`;
  // What to do comes before what it is known from: most people need no more.
  const blocks = [
    `${heading}\n${wrapText(printable(answer.summary), columns)}\n`,
    answer.nextSteps.length === 0 ? '' : `${dim('Next')}\n${indented(answer.nextSteps)}`,
    answer.details.length === 0 ? '' : `${dim('Details')}\n${indented(answer.details)}`,
  ];
  await io.stdout.write(blocks.filter((block) => block !== '').join('\n'));
  return exitCodes.ok;
}
