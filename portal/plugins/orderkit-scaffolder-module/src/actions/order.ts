import { createTemplateAction } from '@backstage/plugin-scaffolder-node';
import { JsonObject } from '@backstage/types';
import { OrderkitService } from '../OrderkitService';
import { oneLine } from '../texts';
import {
  commonInput,
  Context,
  followed,
  followOptions,
  label,
  orderOutput,
  requesterOf,
  waitForReady,
  written,
} from './common';
import { orderExamples } from './examples';
import { logPlan } from './plans';

/** Make the action `orderkit:order`. */
export function createOrderAction(service: OrderkitService) {
  return createTemplateAction({
    id: 'orderkit:order',
    description: 'Order something that an Orderkit platform offers, and follow it until it is Ready.',
    examples: orderExamples,
    supportsDryRun: true,
    schema: {
      input: {
        kit: z => label(z).describe('What to order: the name of a kit, for example garage.'),
        values: z =>
          z.record(z.unknown()).describe("The values of the kit's form, by its parameters' names."),
        ...waitForReady,
        ...commonInput,
      },
      output: {
        ...orderOutput,
        created: z => z.boolean().describe('false: the same order was there already.').optional(),
      },
    },
    async handler(ctx) {
      const values = ctx.input.values as JsonObject;
      const requester = requesterOf(ctx);
      if (ctx.isDryRun) {
        const path = `/v1/kits/${ctx.input.kit}/plan`;
        await logPlan(ctx, await written(service, ctx, { path, body: { values, ...requester } }));
        ctx.output('message', 'This was a dry run: nothing is written. The log has the plan.');
        return;
      }
      // No key is needed: an order is found by its id, and compared.
      const task = { template: ctx.input.kit, id: taskId(ctx), values, ...requester };
      const answer = await written(service, ctx, { path: '/v1/tasks', body: task });
      ctx.output('body', answer as Record<string, unknown>);
      ctx.output('created', answer.created === true);
      const order = oneLine(answer.order, 63);
      if (!order) {
        ctx.logger.info(`${ctx.input.kit} is done.`);
        return; // a template of the pack that orders nothing
      }
      ctx.logger.info(answer.created ? `${order} is ordered.` : `${order} was ordered already.`);
      await followed(followOptions(service, ctx, order), ctx, ctx.input.waitFor ?? 'ready');
    },
  });
}

/** Return the task's id as the service takes it. */
function taskId(ctx: Context): string {
  return ctx.task.id.replace(/[^A-Za-z0-9._-]/g, '-').slice(0, 100);
}
