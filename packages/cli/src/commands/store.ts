import type { StoreReport } from '@muster/coordinator/store/sqlite/checkStore';
import type { CommandModule, Context } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { orphansText } from '../nodes/nodeText.ts';
import { writeJson } from '../output/json.ts';
import { printable } from '../output/text.ts';
import { type QueryFlags, withQuery } from '../query.ts';
import { withSession } from '../session.ts';
import { offline, printReplaced, storeDirOf } from '../storeFiles.ts';

type Action = (context: Context, flags: QueryFlags) => Promise<ExitCode>;

const actions: Readonly<Record<string, Action>> = {
  check: checkStore,
  accept: acceptStore,
  advance: advanceStore,
};

export const command: CommandModule = {
  define(sub) {
    sub.addArgument(sub.createArgument('<action>', 'action').choices(Object.keys(actions)));
    withQuery(sub);
    sub.addHelpText(
      'after',
      '\ncheck    reads the entire store of --data and compares it with its checksums; stop the coordinator first\n' +
        'accept   continues with a damaged store of --data, with the losses that `check` reports\n' +
        'advance  after a restore: continues with higher attempt numbers than any agent knows; run it once every node is back\n' +
        '\nExit code 1 of `check`: the store is damaged.',
    );
  },
  run: (context: Context, action: string, flags: QueryFlags) => (actions[action] as Action)(context, flags),
};

async function checkStore(context: Context, flags: QueryFlags): Promise<ExitCode> {
  const dataDir = storeDirOf(context, flags);
  const { checkStore: check } = await import('@muster/coordinator/store/sqlite/checkStore');
  const report = await offline(dataDir, () => check(dataDir));
  const exitCode = report.findings.length === 0 ? exitCodes.ok : exitCodes.problemFound;
  if (flags.output === 'json')
    await writeJson(context.io.stdout, { ok: report.findings.length === 0, ...report });
  else await context.io.stdout.write(reportText(report, dataDir));
  return exitCode;
}

function reportText({ findings, contents }: StoreReport, dataDir: string): string {
  const lines = findings.map(({ kind, message }) => `${kind}: ${printable(message)}\n`);
  if (contents !== null) {
    const { jobs, events, pages } = contents;
    const verdict = findings.length === 0 ? 'is intact' : `is damaged (${findings.length} findings)`;
    lines.push(`The store of ${dataDir} ${verdict}: ${jobs} jobs, ${events} events, ${pages} pages.\n`);
  }
  return lines.join('');
}

async function acceptStore(context: Context, flags: QueryFlags): Promise<ExitCode> {
  const dataDir = storeDirOf(context, flags);
  const { acceptStore: accept } = await import('@muster/coordinator/store/sqlite/restoreStore');
  const replaced = await offline(dataDir, async () => accept(dataDir, context.clock.wallMs()));
  if (replaced === null) {
    if (flags.output === 'json') await writeJson(context.io.stdout, { accepted: false });
    else
      await context.io.stdout.write(
        `Nothing is missing in the store of ${dataDir}, so nothing was changed.\n`,
      );
    return exitCodes.ok;
  }
  return printReplaced(context, flags, `The store of ${dataDir} is accepted as it is`, replaced);
}

async function advanceStore(context: Context, flags: QueryFlags): Promise<ExitCode> {
  const { io, environment } = context;
  const { cluster, nodes } = await withSession(context, flags, async ({ api }) => {
    const advanced = await api.advanceStore();
    return { cluster: advanced, nodes: await api.listNodes() };
  });
  if (flags.output === 'json') {
    const orphans = nodes.flatMap(({ name, orphans: tasks }) =>
      tasks.map((each) => ({ node: name, ...each })),
    );
    await writeJson(io.stdout, { ...cluster, orphans });
    return exitCodes.ok;
  }
  const because = printable(cluster.pausedBecause);
  await io.stdout.write(
    because === ''
      ? 'The store was advanced; jobs are started again.\n'
      : `The store was advanced; nothing is started yet: ${because}.\n`,
  );
  await io.stdout.write(orphansText(nodes, environment.programName));
  return exitCodes.ok;
}
