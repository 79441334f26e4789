import { Alert, Flex, Text } from '@backstage/ui';
import { Costs, Plan } from '../api';
import { Fields, Heading } from './parts';
import { count, cut } from './words';

const SIGNS: Record<string, string> = { added: '+', changed: '~', removed: '−', replaced: '±' };
const RESOURCES_MAX = 60;

function Money({ costs }: { costs: Costs }) {
  const { before, after, difference } = costs.monthly;
  const same = Number(difference) === 0;
  const currency = cut(costs.currency, 10);
  return (
    <Text as="p" weight="bold">
      {same
        ? `${cut(after, 30)} ${currency} a month, as before`
        : `${cut(before, 30)} → ${cut(after, 30)} ${currency} a month`}
      {Number(costs.upTo.after) !== 0 && ` and up to ${cut(costs.upTo.after, 30)} ${currency} more`}
    </Text>
  );
}

/** Whether a change has to be confirmed, because data goes. */
export const losesData = (plan: Plan | null | undefined) =>
  Boolean(plan?.dangers.some(danger => danger.code === 'data-loss'));

/** What a change would do: a sentence, what is dangerous or refused, the cost, fields and resources. */
export function PlanView({ plan }: { plan: Plan }) {
  return (
    <Flex direction="column" gap="2" data-testid="orderkit-plan">
      <Text as="p">{cut(plan.summary)}</Text>
      {plan.faults.map((fault, index) => (
        <Alert
          key={`fault-${index}`}
          status="danger"
          icon
          title="It would be refused"
          description={`${cut(fault.message)} ${cut(fault.hint)}`}
        />
      ))}
      {plan.dangers.map((danger, index) => (
        <Alert key={`danger-${index}`} status="warning" icon title={cut(danger.message)} />
      ))}
      {plan.costs && <Money costs={plan.costs} />}
      {plan.fields.length > 0 && <Fields rows={plan.fields} />}
      {plan.resources.length > 0 && (
        <>
          <Heading>What that does</Heading>
          <ul style={{ margin: 0, paddingInlineStart: 20, overflowWrap: 'anywhere' }}>
            {plan.resources.slice(0, RESOURCES_MAX).map((resource, index) => (
              <li key={index}>
                <span aria-hidden="true">{SIGNS[resource.action] ?? '?'} </span>
                <strong>{cut(resource.kind, 80)}</strong> {cut(resource.name || resource.path, 120)}{' '}
                {cut(resource.action, 20)}
                {resource.action === 'changed' && <Fields rows={resource.fields} />}
              </li>
            ))}
            {plan.resources.length > RESOURCES_MAX && <li>and {plan.resources.length - RESOURCES_MAX} more</li>}
          </ul>
        </>
      )}
      {plan.unchanged > 0 && (
        <Text as="p" variant="body-small" color="secondary">
          {count(plan.unchanged, 'part')} {plan.unchanged === 1 ? 'stays as it is' : 'stay as they are'}.
        </Text>
      )}
      {plan.unknowns.slice(0, 10).map((text, index) => (
        <Text as="p" variant="body-small" color="secondary" key={index}>
          Not known: {cut(text)}
        </Text>
      ))}
    </Flex>
  );
}
