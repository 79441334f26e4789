import { useState } from 'react';
import { Flex } from '@backstage/ui';
import { EntityInfoCard, useEntity } from '@backstage/plugin-catalog-react';
import { ORDER_ANNOTATION } from '../entities';
import { useOrder } from '../useLive';
import { ChangeDialog } from './ChangePanel';
import { Ended } from './EndPanel';
import { OrderFacts, OrderHeader, OrderOutputs } from './OrderHeader';
import { Loading, Problem, Stale } from './parts';

/** How the order of a page is, live. */
export function OrderCard() {
  const { entity } = useEntity();
  const order = entity.metadata.annotations?.[ORDER_ANNOTATION] ?? '';
  const { data: view, error, asOf, live, refresh } = useOrder(order);
  const [change, setChange] = useState<string>();
  let content;
  if (view) {
    content = (
      <Flex direction="column" gap="4">
        <Stale error={error} asOf={asOf} onRetry={refresh} />
        <OrderHeader view={view} onChange={setChange} />
        <OrderFacts view={view} />
        <OrderOutputs view={view} />
      </Flex>
    );
  } else if (error?.missing) {
    content = <Ended order={order} error={error} />;
  } else {
    content = error ? <Problem error={error} onRetry={refresh} looking /> : <Loading what={`the order ${order}`} lines={5} />;
  }
  return (
    <EntityInfoCard title="Order">
      <div data-testid="orderkit-card" data-live={live}>
        {content}
      </div>
      {view && change !== undefined && (
        <ChangeDialog view={view} change={change} onClose={() => setChange(undefined)} onChanged={refresh} />
      )}
    </EntityInfoCard>
  );
}
