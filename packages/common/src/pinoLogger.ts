import { writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { pino } from 'pino';
import { systemClock } from './clock.ts';
import type { Logger } from './log.ts';
import { lineOf } from './logLine.ts';

const stderr = 2;
const levels = ['debug', 'info', 'warn', 'error', 'silent'] as const;

/**
 * The daemons' logger. Synchronous writes to stderr: a daemon that is killed a moment later has still said why. Programs get
 * a JSON object per line, a terminal a line to read.
 * @param name the program, such as `coordinator`
 * @param level `debug`, `info`, `warn`, `error` or `silent`
 */
export function createLogger(name: string, level: string): Logger {
  if (isatty(stderr)) return terminalLogger(name, level);
  return pino(
    { name, level, base: { pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ dest: stderr, sync: true }),
  );
}

function terminalLogger(name: string, level: string): Logger {
  const least = levels.findIndex((each) => each === level);
  const write = (of: Exclude<(typeof levels)[number], 'silent'>) => (fields: object, message: string) => {
    if (levels.indexOf(of) < least) return;
    try {
      writeSync(stderr, lineOf({ atMs: systemClock.wallMs(), name, level: of, message, fields }));
    } catch {
      // The terminal was closed: nobody reads it any more.
    }
  };
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}
