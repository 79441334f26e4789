import { JsonObject } from '@backstage/types';
import { object } from '../OrderkitService';
import { oneLine } from '../texts';
import { Context } from './common';

const LINES_MAX = 200;

/** Write a plan into the log of a dry run, and put out whose it is. */
export async function logPlan(ctx: Context, answer: JsonObject): Promise<void> {
  const plan = object(answer.plan);
  const markdown = typeof answer.markdown === 'string' ? answer.markdown : plan?.summary;
  const lines = (typeof markdown === 'string' ? markdown : '').split('\n', LINES_MAX);
  ctx.logger.info('Nothing is written. The plan:');
  lines.filter(line => line.trim()).forEach(line => ctx.logger.info(oneLine(line)));
  if (typeof answer.order === 'string') {
    ctx.output('order', answer.order);
    ctx.output('entityRef', `component:default/${answer.order}`);
  }
  ctx.output('body', answer);
}
