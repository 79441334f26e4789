import { createTemplateAction } from '@backstage/plugin-scaffolder-node';
import { JsonObject } from '@backstage/types';
import { TaskError } from '../errors';
import { OrderkitService } from '../OrderkitService';
import { EndProgress, readState, untilEnded } from '../progress';
import { oneLine } from '../texts';
import {
  commonInput,
  followOptions,
  orderInput,
  reasonInput,
  requesterOf,
  writeOf,
  written,
} from './common';
import { endExamples } from './examples';

/** Make the action `orderkit:end`. */
export function createEndAction(service: OrderkitService) {
  return createTemplateAction({
    id: 'orderkit:end',
    description: 'End an order, and follow it until everything that was made for it is gone.',
    examples: endExamples,
    supportsDryRun: true,
    schema: {
      input: {
        ...orderInput,
        confirm: z => z.string().max(63).describe("The order's id again: an end is final."),
        repository: z =>
          z
            .enum(['archive', 'delete'])
            .describe('What becomes of its repository; default: as the kit says.')
            .optional(),
        take: z =>
          z
            .record(z.boolean())
            .describe('What to remove that would outlive it, by the names of the kit.')
            .optional(),
        ...reasonInput,
        waitFor: z =>
          z
            .enum(['ended', 'written'])
            .describe('ended (default): until all is gone. written: until the end has begun.')
            .optional(),
        ...commonInput,
      },
      output: {
        order: z => z.string().describe('The id of the order.').optional(),
        phase: z => z.string().describe('Ending or Ended.').optional(),
        message: z => z.string().describe('What went and what stays, as Markdown.').optional(),
        body: z => z.record(z.unknown()).describe("The service's answer.").optional(),
      },
    },
    async handler(ctx) {
      const { order, confirm, reason, repository, take, waitFor } = ctx.input;
      ctx.output('order', order);
      const options = followOptions(service, ctx, order);
      if (ctx.isDryRun) {
        if (confirm !== order) {
          throw new TaskError(`confirm: '${oneLine(confirm, 63)}' is not the order's id. Type ${order}.`);
        }
        const { phase, line } = await readState(options);
        ctx.output('phase', phase);
        ctx.logger.info(`${order} would end; nothing is written. It is ${line}`);
        return;
      }
      const body: JsonObject = {
        confirm,
        ...(reason ? { reason } : {}),
        ...(repository ? { repository } : {}),
        ...(take ? { take } : {}),
        ...requesterOf(ctx),
      };
      const write = writeOf(ctx, `/v1/orders/${order}/end`, body);
      const progress = new EndProgress(options);
      let answer = await progress.during(written(service, ctx, write));
      if (answer.state !== 'ended' && waitFor !== 'written') {
        ctx.logger.info(`${order} is ending.`);
        try {
          answer = await untilEnded(options, write, progress);
        } catch (error) {
          if (ctx.signal?.aborted) {
            throw new TaskError(
              `Cancelled while waiting: the end of ${order} goes on; an end cannot be taken back.`,
            );
          }
          throw error;
        }
      }
      const message = typeof answer.message === 'string' ? answer.message.slice(0, 10_000) : '';
      message.split('\n').forEach(line => ctx.logger.info(oneLine(line)));
      ctx.output('phase', answer.state === 'ended' ? 'Ended' : 'Ending');
      ctx.output('message', message);
      ctx.output('body', answer as Record<string, unknown>);
    },
  });
}
