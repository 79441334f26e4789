/** Follow an order until it is Ready, and an end until it is over, with a line for each step. */

import { setTimeout } from 'node:timers/promises';
import type { LoggerService } from '@backstage/backend-plugin-api';
import { JsonObject, JsonValue } from '@backstage/types';
import { ServiceError, TaskError } from './errors';
import { Caller, object, OrderkitService, Write } from './OrderkitService';
import { asMarkdown, oneLine, sentences, webAddress } from './texts';

export interface FollowOptions {
  service: OrderkitService;
  caller: Caller;
  logger: LoggerService;
  order: string;
  timeoutMinutes: number;
}

export interface Link {
  title: string;
  url: string;
}

export interface OrderState {
  phase: string;
  ready: boolean;
  line: string;
  reason: string;
  advice: string;
  /** Who has to agree before it is delivered; empty: nobody. */
  approval: string;
  repository: string;
  links: Link[];
}

const POLL_MS = 2_000;
/** Failing may pass while parts start; what stays so is reported. */
const FAILING_MS = 30_000;
const LINKS_MAX = 20;

/**
 * Return the order's state when it is Ready, or when a person has to agree first.
 *
 * @throws TaskError if it fails, ends or takes longer than it may. What is written stays, so the same
 * task, started again, goes on waiting. The signal's reason, if the task is cancelled.
 */
export async function untilReady(options: FollowOptions): Promise<OrderState> {
  const { order, timeoutMinutes } = options;
  const follow = `started again, the task goes on waiting; the order's page shows how it is`;
  let failingSince = Infinity;
  const state = await watch(options, async () => {
    const now = await readState(options);
    failingSince = now.phase === 'Failing' ? Math.min(failingSince, Date.now()) : Infinity;
    if (['Ending', 'Ended'].includes(now.phase)) {
      throw new TaskError(`${order} is written, and somebody ends it: ${now.reason}`);
    }
    if (Date.now() - failingSince > FAILING_MS) {
      const advice = now.advice || 'look at the order in the catalog';
      throw new TaskError(
        sentences(`${order} is written, but fails: ${now.reason}`, advice, follow),
      );
    }
    return { done: now.ready || now.phase === 'Waiting', line: now.line, result: now };
  });
  if (state.done) {
    return state.result;
  }
  throw new TaskError(
    sentences(
      `${order} is written, but not Ready after ${timeoutMinutes} minutes: ${state.result.line}`,
      state.result.advice,
      follow,
    ),
  );
}

/** Read an order's state once. */
export async function readState(options: FollowOptions): Promise<OrderState> {
  const { service, caller, order } = options;
  const row = await service.read(caller, `/v1/orders/${encodeURIComponent(order)}`);
  const phase = oneLine(row.phase, 40);
  const reason = oneLine(row.reason, 500);
  const parts = object(row.parts);
  const count = parts?.total ? ` (${Number(parts.ready)} of ${Number(parts.total)} parts ready)` : '';
  return {
    phase,
    reason,
    ready: row.ready === true,
    line: `${phase}${count}${reason ? `: ${reason}` : ''}`,
    advice: oneLine(row.advice, 500),
    approval: oneLine(row.approval, 500),
    repository: webAddress(row.repository) ?? '',
    links: linksOf(row.outputs),
  };
}

/** How an order is, as Markdown for the end of a task: its state and why, what it waits for, where to change it. */
export function outcome(order: string, state: OrderState): string {
  const isWaiting = state.phase === 'Waiting';
  const now = isWaiting ? `ordered and waits for approval: ${state.approval || state.reason}` : state.line;
  const said = [now, ...(isWaiting ? [] : [state.advice])].map(asMarkdown);
  return `\`${order}\` is ${sentences(...said)} Change or end it on its page in the catalog, on the tab *Order*.`;
}

/** The steps of an end, each of them logged once. */
export class EndProgress {
  private shown = new Set<string>();

  constructor(private readonly options: FollowOptions) {}

  /** Read how far the end is, and log what is new. */
  async look(): Promise<JsonObject> {
    const { service, caller, order } = this.options;
    const now = await service.read(caller, `/v1/orders/${encodeURIComponent(order)}/end`);
    for (const step of Array.isArray(now.steps) ? now.steps : []) {
      const line = `${oneLine(object(step)?.step, 40)}: ${oneLine(object(step)?.done, 500)}`;
      if (!this.shown.has(line)) {
        this.shown.add(line);
        this.options.logger.info(line);
      }
    }
    return now;
  }

  /** Log steps until a request is answered, which may take most of a minute. */
  async during<T>(request: Promise<T>): Promise<T> {
    let isOver = false;
    const over = request.then(
      () => undefined,
      () => undefined,
    );
    over.then(() => {
      isOver = true;
    });
    for (;;) {
      await Promise.race([over, setTimeout(POLL_MS)]);
      if (isOver) {
        return request;
      }
      await this.look().catch(() => undefined); // it has not begun, or the service is busy
    }
  }
}

/**
 * Return the service's last word on an end that was asked for by `write`.
 *
 * An end that was interrupted goes on when it is asked for again; each of its steps is recorded.
 *
 * @throws TaskError if it takes longer than it may. ServiceError if the service refuses it.
 */
export async function untilEnded(
  options: FollowOptions,
  write: Write,
  progress: EndProgress,
): Promise<JsonObject> {
  const { service, caller, logger, order, timeoutMinutes } = options;
  const onRetry = (why: string) => logger.warn(why);
  const end = await watch(options, async () => {
    let now = await progress.look();
    if (now.state === 'stopped') {
      logger.warn(`the end stopped: ${oneLine(now.reason, 500)}; it is continued`);
      now = await progress.during(service.write(caller, write, onRetry));
    }
    return { done: now.state === 'ended', line: '', result: now };
  });
  if (end.done) {
    return end.result;
  }
  throw new TaskError(
    sentences(
      `${order} is still ending after ${timeoutMinutes} minutes`,
      'started again, the task goes on waiting',
    ),
  );
}

interface Look<T> {
  done: boolean;
  /** What is logged when it differs from the last one; empty: nothing. */
  line: string;
  result: T;
}

/** Look until it is done or the time is over. A service that is away for a moment is asked again. */
async function watch<T>(options: FollowOptions, look: () => Promise<Look<T>>): Promise<Look<T>> {
  const { caller, logger, timeoutMinutes } = options;
  const end = Date.now() + timeoutMinutes * 60_000;
  let shown = '';
  const show = (line: string) => {
    if (line && line !== shown) {
      logger.info(line);
    }
    shown = line;
  };
  for (;;) {
    let waitMs = POLL_MS;
    try {
      const now = await look();
      show(now.line);
      if (now.done || Date.now() > end) {
        return now;
      }
    } catch (error) {
      if (!(error instanceof ServiceError && error.isTransient) || Date.now() > end) {
        throw error;
      }
      show(error.message);
      waitMs = Math.max(POLL_MS, error.retryAfterMs ?? 0);
    }
    await setTimeout(waitMs, undefined, { signal: caller.signal });
  }
}

function linksOf(outputs: JsonValue | undefined): Link[] {
  const links: Link[] = [];
  for (const entry of Array.isArray(outputs) ? outputs.slice(0, LINKS_MAX) : []) {
    const output = object(entry);
    const url = output?.link === true && output.secret !== true ? webAddress(output.value) : undefined;
    if (url) {
      links.push({ title: oneLine(output?.title, 100) || oneLine(output?.name, 100), url });
    }
  }
  return links;
}
