import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { jobReferenceHelp, resolveJob } from '../jobs/reference.ts';
import { nameOf } from '../jobs/summary.ts';
import { coloursFor } from '../output/colours.ts';
import { writeJson } from '../output/json.ts';
import { printable } from '../output/text.ts';
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
  const answer = await withSession(context, flags, async ({ api }) =>
    api.explainJob(await resolveJob(api, reference, context)),
  );
  if (flags.output === 'json') {
    await writeJson(io.stdout, answer);
    return exitCodes.ok;
  }
  const { bold, dim } = coloursFor(io.stdout, environment);
  const blocks = [
    `${bold(nameOf(answer.job))}  ${answer.job.id}  ${answer.job.state}\n${printable(answer.summary)}\n`,
    answer.details.map((detail) => `  ${printable(detail)}\n`).join(''),
    answer.nextSteps.length === 0
      ? ''
      : `${dim('Next')}\n${answer.nextSteps.map((step) => `  ${printable(step)}\n`).join('')}`,
  ];
  await io.stdout.write(blocks.filter((block) => block !== '').join('\n'));
  return exitCodes.ok;
}
