import { Alert, Flex, Text } from '@backstage/ui';
import { Costs, Kit, Plan } from '../api';
import { Fields, Heading } from './parts';
import { count, cut, SOFT } from './words';

const SIGNS: Record<string, string> = { added: '+', changed: '~', removed: '−', replaced: '±' };
const RESOURCES_MAX = 60;
const LIST = { margin: 0, paddingInlineStart: 20, overflowWrap: 'anywhere' } as const;

const CENTS = { minimumFractionDigits: 2, maximumFractionDigits: 2 };
const money = (amount: string) => Number(amount).toLocaleString('en', CENTS);

function Money({ costs, isNew }: { costs: Costs; isNew: boolean }) {
  const { before, after, difference } = costs.monthly;
  const same = Number(difference) === 0;
  const currency = cut(costs.currency, 10);
  const step = same ? `${money(after)} ${currency} a month, as before` : `${money(before)} → ${money(after)} ${currency} a month`;
  return (
    <div>
      <Text as="p" weight="bold">
        {isNew ? `${money(after)} ${currency} a month` : step}
        {Number(costs.upTo.after) !== 0 && ` and up to ${money(costs.upTo.after)} ${currency} more`}
      </Text>
      <details>
        <summary style={{ cursor: 'pointer' }}>How the price is calculated</summary>
        <ul style={LIST}>
          {costs.after.slice(0, RESOURCES_MAX).map((line, index) => (
            <li key={index}>
              {cut(line.title, 120)}: {cut(line.reckoned, 200)}
              {line.upTo && ' (up to)'} {cut(line.assumes, 200)}
            </li>
          ))}
          {costs.notPriced.length > 0 && <li>Not priced: {cut(costs.notPriced.join(', '))}</li>}
          {[...costs.notReckoned, ...costs.stale].slice(0, RESOURCES_MAX).map((text, index) => (
            <li key={`more-${index}`}>{cut(text)}</li>
          ))}
        </ul>
        <Text as="p" variant="body-small" style={SOFT}>
          Prices: {cut(costs.table, 80)}, {cut(costs.source, 200)}, {cut(costs.date, 40)}
        </Text>
      </details>
    </div>
  );
}

/** Whether a change has to be confirmed, because data goes. */
export const losesData = (plan: Plan | null | undefined) =>
  Boolean(plan?.dangers.some(danger => danger.code === 'data-loss'));

/**
 * What an order or a change would do: a sentence, who has to approve, what is dangerous or refused, the cost,
 * fields and resources. With a kit, fields have the words of its form.
 */
export function PlanView({ plan, kit, isNew = false }: { plan: Plan; kit?: Kit; isNew?: boolean }) {
  return (
    <Flex direction="column" gap="2" data-testid="orderkit-plan">
      <Text as="p">
        {cut(plan.summary).replace(/\.$/, '')}.{plan.ready && ' It would be Ready in the end.'}
      </Text>
      {plan.approval && <Alert status="info" icon title={`This will wait for approval by ${cut(plan.approval)}`} />}
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
      {[...plan.paused, ...plan.pinned, ...plan.drift].slice(0, RESOURCES_MAX).map((row, index) => (
        <Alert key={`note-${index}`} status="warning" icon title={cut(row.message)} />
      ))}
      {plan.costs && <Money costs={plan.costs} isNew={isNew} />}
      {isNew && !plan.costs && <Text as="p">This kit has no prices.</Text>}
      {plan.fields.length > 0 && !isNew && <Fields rows={plan.fields} kit={kit} />}
      {plan.resources.length > 0 && (
        <>
          <Heading>What that does</Heading>
          <ul style={LIST}>
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
        <Text as="p" variant="body-small" style={SOFT}>
          {count(plan.unchanged, 'part')} {plan.unchanged === 1 ? 'stays as it is' : 'stay as they are'}.
        </Text>
      )}
      {plan.unknowns.slice(0, 10).map((text, index) => (
        <Text as="p" variant="body-small" style={SOFT} key={index}>
          Not known: {cut(text)}
        </Text>
      ))}
    </Flex>
  );
}
