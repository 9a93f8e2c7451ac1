import type { MusterApi } from '@muster/common/wire/client';
import type { CommandModule, Context } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { durationMs } from '../flags.ts';
import { collectJobs } from '../jobs/pages.ts';
import { writeJson } from '../output/json.ts';
import { type QueryFlags, viewOf, withQuery } from '../query.ts';
import { withSession } from '../session.ts';
import { everyMs, watchTop } from '../top/topLoop.ts';
import { formatTop, type TopSnapshot } from '../top/topText.ts';

interface TopFlags extends QueryFlags {
  readonly once?: boolean;
  readonly refresh?: number;
}

const refreshDefaultMs = 2_000;
const hourMs = 60 * 60_000;
/** More jobs than that are not at work at once on anything that is looked at line by line. */
const jobsMax = 1_000;

export const command: CommandModule = {
  define(sub) {
    sub
      .argument('[node]', 'only this node')
      .option('--once', 'print once and exit; default without a terminal')
      .option('--refresh <duration>', 'refresh interval; default 2s', durationMs('--refresh', 500, hourMs));
    withQuery(sub);
    sub.addHelpText(
      'after',
      '\nReadings are means over 10 seconds. `-`: not read. Readings older than 30 seconds are marked.',
    );
  },
  run: top,
};

function top(context: Context, node: string | undefined, flags: TopFlags): Promise<ExitCode> {
  const { io } = context;
  return withSession(context, flags, async (session) => {
    const first = await readSnapshot(session.api, node, flags.output !== 'json');
    if (flags.output === 'json') {
      await writeJson(io.stdout, first);
      return exitCodes.ok;
    }
    if (flags.once === true || !io.stdout.isTerminal) {
      const { summary, headings, lines } = formatTop(first, viewOf(context));
      await io.stdout.write([summary, ...headings, ...lines, ''].join('\n'));
      return exitCodes.ok;
    }
    await watchTop(context, first, {
      look: (onAway, abort) =>
        session.retrying((api) => readSnapshot(api, node, true), {
          patienceMs: Number.POSITIVE_INFINITY,
          onAway: ({ message }) => onAway(message),
          abort,
        }),
      wait: everyMs(flags.refresh ?? refreshDefaultMs),
    });
    return exitCodes.ok;
  });
}

async function readSnapshot(api: MusterApi, node: string | undefined, brief: boolean): Promise<TopSnapshot> {
  const [nodes, telemetry, { jobs }] = await Promise.all([
    node === undefined ? api.listNodes() : api.getNode(node).then((found) => [found]),
    api.listTelemetry(node),
    collectJobs(api, { states: ['starting', 'running', 'stopping'], brief }, jobsMax),
  ]);
  return { nodes, telemetry, jobs };
}
