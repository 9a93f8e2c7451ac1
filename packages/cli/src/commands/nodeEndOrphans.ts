import { setTimeout as sleep } from 'node:timers/promises';
import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { Context, Subcommand } from '../context.ts';
import { CliError } from '../errors.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { type OutputFlags, withOutput } from '../flags.ts';
import { orphanLines } from '../nodes/orphanText.ts';
import { writeJson } from '../output/json.ts';
import { count } from '../output/text.ts';
import { withSession } from '../session.ts';

type EndOrphansFlags = ConnectionFlags & OutputFlags;

const pollMs = 200;
/** For the agent to kill them and say so in a heartbeat. */
const goneWithinMs = 30_000;

export const nodeEndOrphans: Subcommand = {
  name: 'end-orphans',
  summary: 'kill the tasks of a node that the store does not know, as after a restore from a backup',
  define(sub) {
    sub.argument('<node>', 'its name');
    withConnection(withOutput(sub));
    sub.addHelpText(
      'after',
      '\nTheir checkpoints stay where they are. `muster nodes` lists orphans; their GPUs count as used until they have ended.',
    );
  },
  run: endOrphans,
};

async function endOrphans(context: Context, name: string, flags: EndOrphansFlags): Promise<ExitCode> {
  const { io } = context;
  const { before, after } = await withSession(context, flags, async ({ api }) => {
    const asked = await api.endOrphans(name);
    let seen = asked;
    for (let waitedMs = 0; seen.orphans.length > 0 && waitedMs < goneWithinMs; waitedMs += pollMs) {
      await sleep(pollMs);
      seen = await api.getNode(name);
    }
    return { before: asked, after: seen };
  });
  if (after.orphans.length > 0) {
    throw new CliError(`${count(after.orphans.length, 'orphan')} of ${name} did not end within 30 s`, {
      code: 'deadline_exceeded',
      hints: [`The log of its agent says more. They are:\n${orphanLines(after.orphans).trimEnd()}`],
    });
  }
  if (flags.output === 'json') await writeJson(io.stdout, { node: name, ended: before.orphans });
  else if (before.orphans.length === 0) await io.stdout.write(`${name} has no orphans.\n`);
  else {
    const ended = count(before.orphans.length, 'orphan has ended', 'orphans have ended');
    await io.stdout.write(`${ended} on ${name}:\n${orphanLines(before.orphans)}`);
  }
  return exitCodes.ok;
}
