import { Flex, Text } from '@backstage/ui';
import { EntityInfoCard, useEntity } from '@backstage/plugin-catalog-react';
import { Row, Team } from '../api';
import { useTeam } from '../useLive';
import { Empty, Fact, Loading, OrderLink, Phase, Problem, Stale, When } from './parts';
import { count, cut, SOFT } from './words';

const SOON_MS = 7 * 86_400_000;
const ROWS_MAX = 8;
const MOVING = ['Written', 'Waiting', 'Delivering', 'Assembling'];

const expiresSoon = (row: Row) => Boolean(row.expires) && Date.parse(row.expires!) - Date.now() < SOON_MS;

const needsALook = (row: Row) =>
  ['Failing', 'Attention', 'Waiting'].includes(row.phase) || row.attention.length > 0 || expiresSoon(row);

function Content({ team }: { team: Team }) {
  const sum = (phases: string[]) => phases.reduce((all, phase) => all + (team.phases[phase] ?? 0), 0);
  const expiring = team.orders.filter(expiresSoon).length;
  const looks = team.orders.filter(needsALook);
  const costs = team.costs.sums.map(({ monthly, currency }) => `${monthly} ${currency} a month`).join(', ');
  if (!team.total) return <Empty>This team has no orders yet.</Empty>;
  return (
    <Flex direction="column" gap="4">
      <Flex gap="5" style={{ flexWrap: 'wrap' }}>
        <Fact title="Orders">{team.total}</Fact>
        <Fact title="Failing">{team.phases.Failing ?? 0}</Fact>
        <Fact title="Need attention">{team.phases.Attention ?? 0}</Fact>
        <Fact title="Waiting">{sum(MOVING)}</Fact>
        <Fact title="Expire within a week">
          {expiring}
          {team.more && ' or more'}
        </Fact>
        {costs && <Fact title="Cost">{cut(costs, 80)}</Fact>}
      </Flex>
      {looks.length === 0 && <Empty>Nothing needs a look.</Empty>}
      {looks.slice(0, ROWS_MAX).map(row => (
        <Flex key={row.order} direction="column" gap="0.5" style={{ overflowWrap: 'anywhere' }}>
          <Flex gap="2" align="center" style={{ flexWrap: 'wrap' }}>
            <Phase name={row.phase} />
            <OrderLink order={row.order} />
            {row.expires && (
              <Text style={SOFT}>
                expires <When time={row.expires} />
              </Text>
            )}
            {row.cost && <Text style={SOFT}>{cut(row.cost, 60)}</Text>}
          </Flex>
          {(row.approval || row.reason) && <Text style={SOFT}>{cut(row.approval || row.reason, 300)}</Text>}
        </Flex>
      ))}
      {looks.length > ROWS_MAX && <Empty>and {count(looks.length - ROWS_MAX, 'order')} more</Empty>}
    </Flex>
  );
}

/** What fails, waits and expires among a team's orders, and what they cost. */
export function TeamCard() {
  const { entity } = useEntity();
  const { data: team, error, asOf, live, refresh } = useTeam(entity.metadata.name);
  let content;
  if (team) {
    content = (
      <Flex direction="column" gap="3">
        <Stale error={error} asOf={asOf} onRetry={refresh} />
        <Content team={team} />
      </Flex>
    );
  } else if (error?.missing || error?.status === 400) {
    content = <Empty>This group is not a team of the platform.</Empty>;
  } else {
    content = error ? <Problem error={error} onRetry={refresh} looking /> : <Loading what="the team's orders" />;
  }
  return (
    <EntityInfoCard title="Orders">
      <div data-testid="orderkit-team" data-live={live}>
        {content}
      </div>
    </EntityInfoCard>
  );
}
