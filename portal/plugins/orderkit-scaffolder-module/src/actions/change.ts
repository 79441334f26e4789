import { createTemplateAction } from '@backstage/plugin-scaffolder-node';
import { JsonObject } from '@backstage/types';
import { OrderkitService } from '../OrderkitService';
import { oneLine, webAddress } from '../texts';
import {
  commonInput,
  followed,
  followOptions,
  label,
  orderInput,
  orderOutput,
  reasonInput,
  requesterOf,
  waitForReady,
  writeOf,
  written,
} from './common';
import { changeExamples } from './examples';
import { logPlan } from './plans';

const PASSED_ON = ['change', 'base', 'whole', 'resend', 'how', 'reason', 'acceptLoss'] as const;

/** Make the action `orderkit:change`. */
export function createChangeAction(service: OrderkitService) {
  return createTemplateAction({
    id: 'orderkit:change',
    description: "Change a live order within its kit's rules, and follow it until it is Ready again.",
    examples: changeExamples,
    supportsDryRun: true,
    schema: {
      input: {
        ...orderInput,
        values: z =>
          z
            .record(z.unknown())
            .describe("What to change, by the form's parameters or the XRD's fields; null removes."),
        change: z =>
          label(z).describe("The kit's name for the change; default: found by the fields.").optional(),
        base: z =>
          z
            .string()
            .regex(/^[0-9a-f]{7,40}$/)
            .describe('The commit that was looked at: what changed since then is a conflict.')
            .optional(),
        whole: z =>
          z
            .boolean()
            .describe('These are all values of the form: a missing one removes its field.')
            .optional(),
        resend: z =>
          z
            .boolean()
            .describe('The form is sent again when a refused task is started over, with its old base.')
            .optional(),
        how: z =>
          z
            .enum(['direct', 'review'])
            .describe('At once, or as a pull request; default: as the kit says.')
            .optional(),
        acceptLoss: z =>
          z.boolean().describe('Change it even if the plan says that data is lost.').optional(),
        ...reasonInput,
        ...waitForReady,
        ...commonInput,
      },
      output: {
        ...orderOutput,
        state: z =>
          z.string().describe('committed, proposed, unchanged or planned.').optional(),
        url: z => z.string().describe('The commit, or the pull request.').optional(),
        commit: z => z.string().describe('The commit, if there is one.').optional(),
        message: z => z.string().describe('What was done, as Markdown.').optional(),
      },
    },
    async handler(ctx) {
      const { input } = ctx;
      const passedOn = PASSED_ON.filter(name => input[name] !== undefined);
      const body: JsonObject = {
        values: input.values as JsonObject,
        ...Object.fromEntries(passedOn.map(name => [name, input[name]!])),
        ...requesterOf(ctx),
        ...(ctx.isDryRun ? { dryRun: true } : {}),
      };
      const write = writeOf(ctx, `/v1/orders/${input.order}/changes`, body);
      const answer = await written(service, ctx, write);
      const state = oneLine(answer.state, 40);
      const message = typeof answer.message === 'string' ? answer.message.slice(0, 10_000) : '';
      ctx.output('body', answer as Record<string, unknown>);
      ctx.output('state', state);
      ctx.output('message', message);
      ctx.output('url', webAddress(answer.url) ?? '');
      if (typeof answer.commit === 'string') {
        ctx.output('commit', answer.commit);
      }
      message.split('\n').forEach(line => ctx.logger.info(oneLine(line)));
      if (ctx.isDryRun) {
        ctx.output('order', input.order);
        await logPlan(ctx, answer);
        return;
      }
      // A pull request waits for a person: nothing becomes Ready by itself.
      const until = state === 'proposed' ? 'written' : input.waitFor ?? 'ready';
      await followed(followOptions(service, ctx, input.order), ctx, until, false);
    },
  });
}
