import type { Clock } from '@muster/common/clock';
import { messageOf } from '@muster/common/errors';
import type { Logger } from '@muster/common/log';

/** JSON lines on stderr, written at once: a guard has little to say, and it must be there when the guard is killed. */
export function stderrLogger(clock: Clock): Logger {
  const write = (level: string) => (fields: object, message: string) => {
    const line = { time: new Date(clock.wallMs()).toISOString(), level, message, ...fields };
    process.stderr.write(`${JSON.stringify(line, errorsAsText)}\n`);
  };
  return { info: write('info'), warn: write('warn'), error: write('error'), debug: () => {} };
}

function errorsAsText(_key: string, value: unknown): unknown {
  return value instanceof Error ? messageOf(value) : value;
}
