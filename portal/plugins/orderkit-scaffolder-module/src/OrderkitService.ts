import { createHash } from 'node:crypto';
import { setTimeout } from 'node:timers/promises';
import type {
  AuthService,
  BackstageCredentials,
  DiscoveryService,
} from '@backstage/backend-plugin-api';
import { JsonObject, JsonValue } from '@backstage/types';
import { ServiceError } from './errors';
import { oneLine, sentences } from './texts';

const ANSWER_MAX_BYTES = 10_000_000;
const REQUEST_MS = 60_000; // the service answers within 50 s
const WRITE_ATTEMPTS = 5;
const PAUSE_MS = 1_000;
const PAUSE_MAX_MS = 30_000;

/** On whose behalf requests are sent. A new token is made for each request: they are short-lived. */
export interface Caller {
  getInitiatorCredentials(): Promise<BackstageCredentials>;
  signal?: AbortSignal;
}

export interface Write {
  path: string;
  body: JsonObject;
  /** Makes a repetition of a request that needs one harmless. */
  idempotencyKey?: string;
}

/**
 * Orderkit's service behind Backstage's proxy, asked with the credentials of the task's user.
 *
 * The token is one of the scaffolder for the proxy, and in it, as `obo`, one of the user: the service
 * verifies both with the keys that Backstage publishes.
 */
export class OrderkitService {
  constructor(
    private readonly auth: AuthService,
    private readonly discovery: DiscoveryService,
    /** The endpoint in `proxy.endpoints`, such as `/orderkit`. */
    private readonly proxyEndpoint: string,
  ) {}

  /**
   * Read something.
   *
   * @throws ServiceError with the service's sentence.
   */
  async read(caller: Caller, path: string): Promise<JsonObject> {
    return this.send(caller, 'GET', path, { signal: caller.signal });
  }

  /**
   * Write something, or ask for a plan. Repeated while the service is busy or away: its writes are
   * idempotent. A request on its way is not cut off, so that afterwards it is known what was written.
   *
   * @throws ServiceError with the service's sentence.
   */
  async write(caller: Caller, write: Write, onRetry: (why: string) => void): Promise<JsonObject> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.send(caller, 'POST', write.path, { write });
      } catch (error) {
        const again = error instanceof ServiceError && error.isTransient;
        if (!again || attempt === WRITE_ATTEMPTS || caller.signal?.aborted) {
          throw error;
        }
        onRetry(error.message);
        const pauseMs = error.retryAfterMs ?? PAUSE_MS * 2 ** (attempt - 1);
        await setTimeout(Math.min(pauseMs, PAUSE_MAX_MS), undefined, { signal: caller.signal });
      }
    }
  }

  private async send(
    caller: Caller,
    method: 'GET' | 'POST',
    path: string,
    { write, signal }: { write?: Write; signal?: AbortSignal },
  ): Promise<JsonObject> {
    const token = await this.tokenFor(caller);
    const base = `${await this.discovery.getBaseUrl('proxy')}${this.proxyEndpoint}`;
    const limit = AbortSignal.timeout(REQUEST_MS);
    let response: Response;
    let text: string;
    try {
      response = await fetch(`${base}${path}`, {
        method,
        headers: {
          Accept: 'application/json',
          Authorization: `Bearer ${token}`,
          ...(write ? { 'Content-Type': 'application/json' } : {}),
          ...(write?.idempotencyKey ? { 'Idempotency-Key': write.idempotencyKey } : {}),
        },
        body: write ? JSON.stringify(write.body) : undefined,
        redirect: 'error',
        signal: signal ? AbortSignal.any([signal, limit]) : limit,
      });
      text = await boundedText(response);
    } catch (error) {
      signal?.throwIfAborted();
      const why = limit.aborted ? `no answer after ${REQUEST_MS / 1000} s` : causeOf(error);
      throw new ServiceError(
        0,
        sentences(
          `Orderkit's service cannot be reached through the portal's proxy: ${why}`,
          `check that it runs, and proxy.endpoints.${this.proxyEndpoint} in app-config`,
        ),
      );
    }
    const answer = parsed(text);
    if (response.ok && answer) {
      return answer;
    }
    throw this.refusal(response, answer, text);
  }

  private async tokenFor(caller: Caller): Promise<string> {
    try {
      const onBehalfOf = await caller.getInitiatorCredentials();
      const request = { onBehalfOf, targetPluginId: 'proxy' };
      return (await this.auth.getPluginRequestToken(request)).token;
    } catch (error) {
      throw new ServiceError(
        401,
        sentences(
          `the portal cannot prove to Orderkit's service who runs this task: ${causeOf(error)}`,
          'start the task again, signed in',
        ),
      );
    }
  }

  private refusal(response: Response, answer: JsonObject | undefined, text: string): ServiceError {
    const { status } = response;
    const seconds = Number(response.headers.get('retry-after') ?? NaN);
    const retryAfterMs = Number.isFinite(seconds) ? Math.max(0, seconds) * 1000 : undefined;
    const error = object(answer?.error);
    const message = oneLine(error?.message);
    if (message && typeof error?.hint === 'string') {
      return new ServiceError(status, sentences(message, oneLine(error.hint)), retryAfterMs);
    }
    const wayOut =
      status === 404
        ? `is proxy.endpoints.${this.proxyEndpoint} in app-config, and does it lead to the service?`
        : `check proxy.endpoints.${this.proxyEndpoint} in app-config, and that the service runs`;
    const said = message || oneLine(text, 200) || 'nothing readable';
    return new ServiceError(
      response.ok ? 502 : status,
      sentences(`the portal's proxy answered ${status} for Orderkit's service: ${said}`, wayOut),
      retryAfterMs,
    );
  }
}

/** Return a key that a repeated or recovered task makes again, and nothing else does. */
export function operationKey(taskId: string, stepId: string, request: JsonValue): string {
  const text = JSON.stringify([taskId, stepId, sorted(request)]);
  const digest = createHash('sha256').update(text).digest('hex').slice(0, 24);
  return `${taskId.replace(/[^A-Za-z0-9._-]/g, '-').slice(0, 64)}.${digest}`;
}

export function object(value: JsonValue | undefined): JsonObject | undefined {
  return value !== null && typeof value === 'object' && !Array.isArray(value) ? value : undefined;
}

function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) {
    return value.map(sorted);
  }
  const members = object(value);
  return members
    ? Object.fromEntries(
        Object.keys(members)
          .sort()
          .map(key => [key, sorted(members[key] ?? null)]),
      )
    : value;
}

async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > ANSWER_MAX_BYTES) {
      throw new Error(`an answer of more than ${ANSWER_MAX_BYTES} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function parsed(text: string): JsonObject | undefined {
  try {
    return object(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function causeOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return oneLine(cause instanceof Error ? cause.message : String(cause), 200);
}
