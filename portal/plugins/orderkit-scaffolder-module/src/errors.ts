/**
 * An error for the person who runs the task.
 *
 * The scaffolder shows the message in the task's banner and writes the stack into its log, so the
 * stack is the message too: a person has no use for lines of our code.
 */
export class TaskError extends Error {
  constructor(message: string) {
    super(message);
    this.stack = message;
  }
}

/** The service, or what is in front of it, refused a request or did not answer. */
export class ServiceError extends TaskError {
  /** The HTTP status; 0 if there was no answer. */
  readonly status: number;
  readonly retryAfterMs: number | undefined;

  constructor(status: number, message: string, retryAfterMs?: number) {
    super(message);
    this.status = status;
    this.retryAfterMs = retryAfterMs;
  }

  /** Whether the same request may be answered a little later. */
  get isTransient(): boolean {
    return [0, 429, 502, 503, 504].includes(this.status);
  }
}
