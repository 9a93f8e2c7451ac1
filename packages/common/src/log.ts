/** Structured logs: one JSON object per line on stderr, so that stdout stays the program's own. */
export interface Logger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  debug(fields: object, message: string): void;
}

export const silentLogger: Logger = { info() {}, warn() {}, error() {}, debug() {} };
