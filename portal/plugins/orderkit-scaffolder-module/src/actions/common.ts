/** What the three actions share: their options, cancelling, and the outputs of an order. */

import type { z as Zod } from 'zod/v3';
import type { ActionContext } from '@backstage/plugin-scaffolder-node';
import { JsonObject } from '@backstage/types';
import { ServiceError, TaskError } from '../errors';
import { operationKey, OrderkitService, Write } from '../OrderkitService';
import { FollowOptions, OrderState, outcome, readState, untilReady } from '../progress';

type ZodImpl = typeof Zod;
export type Context = ActionContext<any, any>;

export const TIMEOUT_MINUTES = 15;

/** Inputs of every action. */
export const commonInput = {
  timeoutMinutes: (z: ZodImpl) =>
    z
      .number()
      .min(1)
      .max(24 * 60)
      .describe(`How long to wait at most; default: ${TIMEOUT_MINUTES}.`)
      .optional(),
};

export const waitForReady = {
  waitFor: (z: ZodImpl) =>
    z
      .enum(['ready', 'written'])
      .describe(
        'ready (default): the step ends when the order is Ready, with its progress in the log. ' +
          'written: it ends when Git has it.',
      )
      .optional(),
};

export const orderInput = {
  order: (z: ZodImpl) => label(z).describe('The id of the order, for example garage-ae86.'),
};

export const reasonInput = {
  reason: (z: ZodImpl) => z.string().max(500).describe('Why; it is kept in Git.').optional(),
};

export const orderOutput = {
  order: (z: ZodImpl) => z.string().describe('The id of the order.').optional(),
  phase: (z: ZodImpl) => z.string().describe('Its phase at the end of the step.').optional(),
  message: (z: ZodImpl) => z.string().describe('How the order is at the end, as Markdown.').optional(),
  repository: (z: ZodImpl) => z.string().describe('The address of its repository.').optional(),
  entityRef: (z: ZodImpl) => z.string().describe('Its entity in the catalog.').optional(),
  links: (z: ZodImpl) =>
    z
      .array(z.object({ title: z.string(), url: z.string() }))
      .describe('Its repository, and where what was ordered can be reached.')
      .optional(),
  body: (z: ZodImpl) => z.record(z.unknown()).describe("The service's answer.").optional(),
};

export function label(z: ZodImpl) {
  return z
    .string()
    .max(63)
    .regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/);
}

/** Say for whom a request is, where the service cannot verify it by the token. */
export function requesterOf(ctx: Context): JsonObject {
  return ctx.user?.ref ? { requester: ctx.user.ref } : {};
}

export function followOptions(service: OrderkitService, ctx: Context, order: string): FollowOptions {
  const timeoutMinutes = ctx.input.timeoutMinutes ?? TIMEOUT_MINUTES;
  return { service, caller: ctx, logger: ctx.logger, order, timeoutMinutes };
}

/** Make a write of this step. Run twice, by a retry or a recovery, it is the same write. */
export function writeOf(ctx: Context, path: string, body: JsonObject): Write {
  const idempotencyKey = operationKey(ctx.task.id, ctx.step?.id ?? '', [path, body]);
  return { path, body, idempotencyKey };
}

/** Carry out a write of a step that may be cancelled before it, and not in it. */
export async function written(
  service: OrderkitService,
  ctx: Context,
  write: Write,
): Promise<JsonObject> {
  if (ctx.signal?.aborted) {
    throw new TaskError('Cancelled before anything was written.');
  }
  try {
    return await service.write(ctx, write, why => ctx.logger.warn(`${why} It is asked again.`));
  } catch (error) {
    if (ctx.signal?.aborted && !(error instanceof ServiceError && !error.isTransient)) {
      throw new TaskError(
        'Cancelled while the service did not answer, so it may have been written. ' +
          'Start the task again to finish it, or look at the order in the catalog.',
      );
    }
    throw error;
  }
}

/**
 * Wait for an order as the step says, and put out what it came to; `says`: in words too.
 *
 * @throws TaskError that says what is written, also if the task is cancelled.
 */
export async function followed(
  options: FollowOptions,
  ctx: Context,
  until: 'ready' | 'written',
  says = true,
) {
  const { order } = options;
  ctx.output('order', order);
  ctx.output('entityRef', `component:default/${order}`);
  let state: OrderState;
  try {
    state = await (until === 'ready' ? untilReady(options) : readState(options));
  } catch (error) {
    if (ctx.signal?.aborted) {
      throw new TaskError(
        `Cancelled while waiting: ${order} is written and goes on by itself. ` +
          'To take it back, change or end it from its page in the catalog.',
      );
    }
    if (until === 'written') {
      ctx.logger.warn(`its state cannot be read now: ${(error as Error).message}`);
      ctx.output('phase', 'Written');
      if (says) ctx.output('message', `\`${order}\` is written.`);
      return;
    }
    throw error;
  }
  if (state.phase === 'Waiting') {
    ctx.logger.info(`waits for approval: ${state.approval || state.reason}`);
  } else if (until === 'ready') {
    ctx.logger.info(`${order} is ${state.phase}.`);
  }
  const repository = state.repository ? [{ title: 'Repository', url: state.repository }] : [];
  ctx.output('phase', state.phase);
  if (says) ctx.output('message', outcome(order, state));
  ctx.output('repository', state.repository);
  ctx.output('links', [...repository, ...state.links]);
}
