import { useState } from 'react';
import { Flex, Tab, TabList, TabPanel, Tabs } from '@backstage/ui';
import { EntityInfoCard, useEntity } from '@backstage/plugin-catalog-react';
import { ORDER_ANNOTATION } from '../entities';
import { useOrder } from '../useLive';
import { ChangeDialog, ChangePanel } from './ChangePanel';
import { Ended, EndPanel } from './EndPanel';
import { HistoryPanel } from './HistoryPanel';
import { OrderHeader } from './OrderHeader';
import { Loading, Problem, Stale } from './parts';
import { PartsPanel } from './PartsPanel';
import { useInAddress } from '../useInAddress';

const PANELS = ['parts', 'change', 'history', 'end'];

/** Everything about one order: its parts, its changes, its past and its end. */
export function OrderTab() {
  const { entity } = useEntity();
  const order = entity.metadata.annotations?.[ORDER_ANNOTATION] ?? '';
  const { data: view, error, asOf, live, refresh } = useOrder(order);
  const [change, setChange] = useState<string>();
  const [panel, setPanel] = useInAddress('panel', PANELS);
  if (!view) {
    if (error?.missing) return <Ended order={order} error={error} />;
    return error ? <Problem error={error} onRetry={refresh} looking /> : <Loading what={`the order ${order}`} lines={6} />;
  }
  return (
    <Flex direction="column" gap="4" data-testid="orderkit-tab" data-live={live}>
      <Stale error={error} asOf={asOf} onRetry={refresh} />
      <EntityInfoCard title={view.order}>
        <OrderHeader view={view} onChange={setChange} />
      </EntityInfoCard>
      <Tabs selectedKey={panel} onSelectionChange={key => setPanel(String(key))}>
        <TabList>
          <Tab id="parts">Parts</Tab>
          <Tab id="change">Change</Tab>
          <Tab id="history">History</Tab>
          <Tab id="end">End</Tab>
        </TabList>
        <TabPanel id="parts">
          <PartsPanel view={view} />
        </TabPanel>
        <TabPanel id="change">
          <ChangePanel view={view} onChanged={refresh} />
        </TabPanel>
        <TabPanel id="history">
          <HistoryPanel view={view} onChanged={refresh} />
        </TabPanel>
        <TabPanel id="end">
          <EndPanel view={view} onChanged={refresh} />
        </TabPanel>
      </Tabs>
      {change !== undefined && (
        <ChangeDialog view={view} change={change} onClose={() => setChange(undefined)} onChanged={refresh} />
      )}
    </Flex>
  );
}
