/** An error per decision a caller makes: each code says what to do next. */
export type ErrorCode =
  /** The request is wrong; sending it again is useless. */
  | 'invalid'
  | 'not_found'
  /** Same request id with another spec, or a name that is taken. */
  | 'already_exists'
  /** Right request, wrong state. */
  | 'failed_precondition'
  /** Disk reserve or a limit; try again once there is room. */
  | 'resource_exhausted'
  /** No or unknown token. */
  | 'unauthenticated'
  /** The token may not do this; or the server could not prove to be the coordinator. */
  | 'permission_denied'
  /** Try again. */
  | 'unavailable'
  | 'deadline_exceeded'
  /** A bug of Muster, such as an operation that would have broken a guarantee. */
  | 'internal';

export interface SpecProblemView {
  readonly path: string;
  readonly message: string;
  readonly expected: string | null;
  readonly suggestion: string | null;
}

/** An error meant for a user: the message names the thing, the place and the remedy. The cause is kept apart. */
export class MusterError extends Error {
  override readonly name = 'MusterError';
  readonly code: ErrorCode;
  /** Field-precise problems of a refused job spec. */
  readonly problems: readonly SpecProblemView[];

  constructor(
    code: ErrorCode,
    message: string,
    options?: ErrorOptions & { problems?: readonly SpecProblemView[] },
  ) {
    super(message, options);
    this.code = code;
    this.problems = options?.problems ?? [];
  }
}

/**
 * An operation that would have broken a guarantee of docs/guarantees.md. It is refused, and the cluster stays as it was.
 * Each one is a bug of Muster.
 */
export class InvariantViolation extends Error {
  override readonly name = 'InvariantViolation';
  /** Its number on that page, such as `G2`. */
  readonly guarantee: string;

  constructor(guarantee: string, message: string) {
    super(
      `guarantee ${guarantee} would not hold (docs/guarantees.md#${guarantee.toLowerCase()}): ${message}`,
    );
    this.guarantee = guarantee;
  }
}

/**
 * @param guarantee its number on docs/guarantees.md, such as `G2`
 * @throws {InvariantViolation} unless the condition holds
 */
export function assertInvariant(condition: boolean, guarantee: string, message: string): asserts condition {
  if (!condition) throw new InvariantViolation(guarantee, message);
}

/** The message of whatever was thrown, for log fields and user sentences. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
