/** A task that could not be started, with the cause its attempt will carry. */
export class DriverError extends Error {
  override readonly name = 'DriverError';
  /** A cause kind of the design: `command_not_found`, `image_pull`, `disk_full`, … */
  readonly causeKind: string;

  constructor(causeKind: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.causeKind = causeKind;
  }
}

/** The task's lease had run out before it was started: nothing ran, and there is nothing to report. */
export class LeaseExpired extends Error {
  override readonly name = 'LeaseExpired';
}
