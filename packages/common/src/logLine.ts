/** A line of a daemon's log for a person at a terminal. Pure. */

export interface LogEntry {
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
