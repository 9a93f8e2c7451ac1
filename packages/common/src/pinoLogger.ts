import { pino } from 'pino';
import type { Logger } from './log.ts';

/**
 * The daemons' logger. Synchronous writes to stderr: a daemon that is killed a moment later has still said why.
 * @param name the program, such as `coordinator`
 * @param level `debug`, `info`, `warn`, `error` or `silent`
 */
export function createLogger(name: string, level: string): Logger {
  return pino(
    { name, level, base: { pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ dest: 2, sync: true }),
  );
}
