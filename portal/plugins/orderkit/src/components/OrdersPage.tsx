import { useCallback, useEffect, useMemo, useState } from 'react';
import { useApi } from '@backstage/frontend-plugin-api';
import { Button, Container, Flex, Select, Text, TextField } from '@backstage/ui';
import { ListedOrder, orderkitApiRef, ServiceError } from '../api';
import { useInAddress } from '../useInAddress';
import { useRead } from '../useLive';
import { Empty, Loading, OrderLink, Phase, Problem, Stale, When } from './parts';
import { count, cut, person } from './words';

const LOOK_MS = 15_000;
const TYPING_MS = 400;
const PAGE = 50;
/** By the name in the address: its words, and the phases that it shows. */
const FILTERS: Record<string, { label: string; phases: string }> = {
  all: { label: 'All orders', phases: '' },
  failing: { label: 'Failing', phases: 'Failing' },
  attention: { label: 'Failing or needs attention', phases: 'Failing,Attention' },
  waiting: { label: 'Waiting for approval', phases: 'Waiting' },
  moving: { label: 'On its way', phases: 'Written,Delivering,Assembling' },
  ready: { label: 'Ready', phases: 'Ready' },
};
const NAMES = Object.keys(FILTERS);
const LINE = '1px solid color-mix(in srgb, currentColor 20%, transparent)';
const COLUMNS = ['Order', 'State', 'Why', 'Kit', 'Team', 'Ordered by', 'Cost', 'Since'];

function Table({ orders }: { orders: ListedOrder[] }) {
  const cell = { padding: '8px 16px 8px 0', textAlign: 'left', verticalAlign: 'top', borderBottom: LINE } as const;
  const hasCosts = orders.some(row => row.cost);
  return (
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- keys can scroll only what has the focus
    <div style={{ overflowX: 'auto' }} tabIndex={0} role="region" aria-label="Orders">
      <table style={{ borderCollapse: 'collapse', width: '100%' }}>
        <thead>
          <tr>
            {COLUMNS.filter(title => title !== 'Cost' || hasCosts).map(title => (
              <th key={title} scope="col" style={cell}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {orders.map(row => (
            <tr key={row.order} data-testid="orderkit-row">
              <th scope="row" style={{ ...cell, whiteSpace: 'nowrap' }}>
                <OrderLink order={row.order} />
              </th>
              <td style={{ ...cell, whiteSpace: 'nowrap' }}>
                <Phase name={row.phase} />
              </td>
              <td style={{ ...cell, minWidth: 220, overflowWrap: 'anywhere' }}>{cut(row.approval || row.reason, 200)}</td>
              <td style={{ ...cell, whiteSpace: 'nowrap' }}>{cut(row.kit, 40)}</td>
              <td style={{ ...cell, whiteSpace: 'nowrap' }}>{cut(row.team, 40)}</td>
              <td style={cell}>{person(row.owner)}</td>
              {hasCosts && <td style={{ ...cell, whiteSpace: 'nowrap' }}>{cut(row.cost, 60)}</td>}
              <td style={{ ...cell, whiteSpace: 'nowrap' }}>
                <When time={row.since} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The orders of the teams of whoever looks, those that need a person first; filters stay in the address. */
export function OrdersPage() {
  const api = useApi(orderkitApiRef);
  const [filter, setFilter] = useInAddress('state', NAMES);
  const [typed, setTyped] = useState('');
  const [text, setText] = useState('');
  const [limit, setLimit] = useState(PAGE);
  useEffect(() => {
    const timer = setTimeout(() => setText(typed.trim()), TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  const { phases } = FILTERS[filter];
  const question = useMemo(() => ({ phase: phases, text, limit }), [phases, text, limit]);
  const { data, error, asOf, refresh } = useRead(useCallback(signal => api.orders(question, signal), [api, question]));
  useEffect(() => {
    const timer = setInterval(refresh, LOOK_MS);
    return () => clearInterval(timer);
  }, [refresh]);
  return (
    <Container>
      <Flex direction="column" gap="4" data-testid="orderkit-orders">
        <Flex gap="4" align="end" style={{ flexWrap: 'wrap' }}>
          <Select
            label="State"
            options={NAMES.map(name => ({ id: name, label: FILTERS[name].label }))}
            value={filter}
            onChange={key => setFilter(String(key))}
          />
          <TextField label="Search" value={typed} onChange={setTyped} maxLength={100} />
        </Flex>
        {error && !data && <Problem error={error as ServiceError} onRetry={refresh} looking />}
        {data && <Stale error={error} asOf={asOf} onRetry={refresh} />}
        {!data && !error && <Loading what="the orders" lines={8} />}
        {data && (
          <Text as="p" role="status">
            {data.cursor ? `The first ${data.orders.length} orders` : count(data.orders.length, 'order')}
          </Text>
        )}
        {data?.orders.length === 0 && <Empty>No order of your teams is like this.</Empty>}
        {data && data.orders.length > 0 && <Table orders={data.orders} />}
        {data?.cursor && (
          <Flex>
            <Button variant="secondary" onPress={() => setLimit(shown => Math.min(shown * 2, 1_000))}>
              Show more
            </Button>
          </Flex>
        )}
      </Flex>
    </Container>
  );
}
