import { clocksText } from '../clockText.ts';
import type { CommandModule, Context } from '../context.ts';
import type { ExitCode } from '../exitCodes.ts';
import { ask, type QueryFlags, withQuery } from '../query.ts';

export const command: CommandModule = {
  define(sub) {
    sub.addArgument(
      sub
        .createArgument('[action]', 'accept: confirm that the clock of the coordinator machine is right')
        .choices(['accept']),
    );
    withQuery(sub);
    sub.addHelpText(
      'after',
      '\nThe coordinator decides by a clock of its own, which continues by CLOCK_BOOTTIME. When the system clock differs and nothing ' +
        'confirms it,\nnothing is removed and no credential of a node expires until both agree, or until `accept`.',
    );
  },
  run: showClock,
};

async function showClock(context: Context, action: string | undefined, flags: QueryFlags): Promise<ExitCode> {
  return ask(
    context,
    flags,
    (api) => (action === undefined ? api.getClock() : api.acceptClock()),
    (clock, { programName }) => clocksText(clock, programName),
  );
}
