import { resolve } from 'node:path';
import type { MusterApi } from '@muster/common/wire/client';
import { Option } from 'commander';
import type { CommandModule, Context } from '../context.ts';
import { usageError } from '../errors.ts';
import type { ExitCode } from '../exitCodes.ts';
import { type LineageDrawing, lineageDrawings } from '../pipelines/lineageDrawings.ts';
import { lineageText } from '../pipelines/pipelineText.ts';
import { ask, type QueryFlags, withQuery } from '../query.ts';

interface LineageFlags extends QueryFlags {
  readonly graph?: LineageDrawing;
}

export const command: CommandModule = {
  define(sub) {
    sub
      .argument(
        '<subject>',
        'digest or path of an artifact, path of a checkpoint, id of a run of a pipeline or `latest`, or of a job of one',
      )
      .addOption(
        new Option('--graph <format>', 'print it as a graph: for Graphviz, as SVG, or as a page').choices(
          lineageDrawings,
        ),
      );
    withQuery(sub);
  },
  async run(context: Context, subject: string, flags: LineageFlags): Promise<ExitCode> {
    const { graph } = flags;
    const question = (api: MusterApi) => api.getLineage(absolute(subject, context.environment.workingDir));
    if (graph === undefined) return ask(context, flags, question, lineageText);
    if (flags.output === 'json')
      throw usageError('--graph and -o json are two forms of the answer; choose one');
    const { lineageDrawing } = await import('../pipelines/lineageDrawing.ts');
    return ask(context, flags, question, (lineage) => lineageDrawing(lineage, graph));
  },
};

/** Ids and digests have no slash, and what is in a store has a URL. */
function absolute(subject: string, workingDir: string): string {
  return subject.includes('/') && !subject.startsWith('s3://') ? resolve(workingDir, subject) : subject;
}
