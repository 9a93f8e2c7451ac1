import { resolve } from 'node:path';
import type { CommandModule, Context } from '../context.ts';
import type { ExitCode } from '../exitCodes.ts';
import { lineageText } from '../pipelines/pipelineText.ts';
import { ask, type QueryFlags, withQuery } from '../query.ts';

export const command: CommandModule = {
  define(sub) {
    sub.argument(
      '<subject>',
      'digest or path of an artifact, path of a checkpoint, id of a run of a pipeline or of a job of one',
    );
    withQuery(sub);
  },
  run: (context: Context, subject: string, flags: QueryFlags): Promise<ExitCode> =>
    ask(
      context,
      flags,
      (api) => api.getLineage(absolute(subject, context.environment.workingDir)),
      lineageText,
    ),
};

/** Ids and digests have no slash. */
function absolute(subject: string, workingDir: string): string {
  return subject.includes('/') ? resolve(workingDir, subject) : subject;
}
