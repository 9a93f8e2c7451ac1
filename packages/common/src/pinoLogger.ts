import { writeSync } from 'node:fs';
import { isatty } from 'node:tty';
import { type DestinationStream, pino } from 'pino';
import { systemClock } from './clock.ts';
import type { Logger } from './log.ts';
import { type LogFacts, logFieldsOf, noLogFacts, withTraining } from './logFields.ts';

const stderr = 2;
/** Of lines that wait for room; further ones are dropped. */
const waitingBytesMax = 64 * 1024;
const levels = ['debug', 'info', 'warn', 'error', 'silent'] as const;

/**
 * The daemons' logger. Synchronous writes to stderr: a daemon that is killed a moment later has still logged why. Programs get
 * a JSON object per line, a terminal a line to read.
 * @param name the program, such as `coordinator`
 * @param level `debug`, `info`, `warn`, `error` or `silent`
 * @param facts for the fields of `logFields.ts`
 */
export function createLogger(name: string, level: string, facts: LogFacts = noLogFacts): Logger {
  if (isatty(stderr)) return terminalLogger(name, level, facts);
  return jsonLogger(name, level, facts, logOutput(stderr));
}

/**
 * Writes each line at once. Lines that cannot be written, such as to a file on a full disk, wait for the next line that can be,
 * up to a bound; a daemon does not end because its log cannot be written.
 * @param file a descriptor, which stays open
 */
export function logOutput(file: number): DestinationStream {
  const output = pino.destination({ dest: file, sync: true, maxLength: waitingBytesMax });
  output.on('error', () => {});
  return output;
}

/** @param output takes a JSON object per line */
export function jsonLogger(name: string, level: string, facts: LogFacts, output: DestinationStream): Logger {
  const base = { pid: process.pid };
  const formatters = { log: (fields: object) => logFieldsOf(fields, facts) };
  return pino({ name, level, base, formatters, timestamp: pino.stdTimeFunctions.isoTime }, output);
}

function terminalLogger(name: string, level: string, facts: LogFacts): Logger {
  const least = levels.findIndex((each) => each === level);
  const write = (of: Exclude<(typeof levels)[number], 'silent'>) => (given: object, message: string) => {
    if (levels.indexOf(of) < least) return;
    const fields = withTraining(given, facts);
    try {
      writeSync(stderr, lineOf({ atMs: systemClock.wallMs(), name, level: of, message, fields }));
    } catch {
      // The terminal was closed: nobody reads it any longer.
    }
  };
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}

/** A line of a daemon's log for a person at a terminal. Pure. */
interface LogEntry {
  /** Milliseconds since 1970. */
  readonly atMs: number;
  /** The program. */
  readonly name: string;
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly message: string;
  readonly fields: object;
}

/** `14:05:09  coordinator  listening on 127.0.0.1:7070 (no TLS)  jobs=0`, ending in a newline; in local time. */
export function lineOf({ atMs, name, level, message, fields }: LogEntry): string {
  const at = new Date(atMs);
  const time = [at.getHours(), at.getMinutes(), at.getSeconds()].map((part) => String(part).padStart(2, '0'));
  const facts = Object.entries(fields)
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`);
  const mark = level === 'info' ? [] : [level.toUpperCase()];
  const words = [time.join(':'), name, ...mark, message, ...facts].join('  ');
  // Words from elsewhere must not move the cursor or change colours.
  return `${words.replaceAll(/[\p{Cc}\p{Bidi_Control}]/gu, ' ')}\n`;
}
