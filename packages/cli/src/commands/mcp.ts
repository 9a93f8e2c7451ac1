import type { Verb } from '@muster/common/people';
import type { MusterApi } from '@muster/common/wire/client';
import { type ConnectionFlags, withConnection } from '../connection.ts';
import type { CommandModule, Context } from '../context.ts';
import { type ExitCode, exitCodes } from '../exitCodes.ts';
import { abortOnStopRequest } from '../io.ts';
import { printable } from '../output/text.ts';
import { withSession } from '../session.ts';

export const command: CommandModule = {
  define(sub) {
    withConnection(sub);
    sub.addHelpText(
      'after',
      '\nA client of the Model Context Protocol starts this program and speaks to it over standard input and output. ' +
        'The tools may do\nwhat the token allows; docs/mcp.md shows how to set it up.',
    );
  },
  run: serve,
};

/** Standard output belongs to the protocol: everything else goes to stderr. */
async function serve(context: Context, flags: ConnectionFlags): Promise<ExitCode> {
  const { io, clock } = context;
  const print = (text: string) => void io.stderr.write(`${printable(text)}\n`).catch(() => {});
  const stop = abortOnStopRequest(io);
  try {
    await withSession(context, flags, async ({ api }) => {
      const { serveToolsOverStdio } = await import('@muster/mcp/stdio');
      await serveToolsOverStdio({
        api,
        verbs: () => verbsOf(api),
        nowMs: () => clock.wallMs(),
        newRequestId: () => context.newRequestId(),
        onBug: (tool, message) => print(`${tool}: ${message}`),
        onProblem: print,
        abort: stop.signal,
      });
    });
  } finally {
    stop.dispose();
  }
  return exitCodes.ok;
}

/** @returns null: nobody answers now, so every tool is offered, and each call tells what is wrong */
async function verbsOf(api: MusterApi): Promise<readonly Verb[] | null> {
  return api.getCaller().then(
    ({ verbs }) => verbs,
    () => null,
  );
}
