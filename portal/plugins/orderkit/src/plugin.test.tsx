import { screen } from '@testing-library/react';
import { createExtensionTester, renderInTestApp } from '@backstage/frontend-test-utils';
import { EntityProvider } from '@backstage/plugin-catalog-react';
import { EntityCardBlueprint, EntityContentBlueprint } from '@backstage/plugin-catalog-react/alpha';
import plugin from './index';
import { clientOf, orderEntity, VIEW } from './__testUtils__/service';
import { orderkitApiRef } from './api';

describe('the plugin', () => {
  it('adds its cards, its tab, its pages, the fields of forms and its API', () => {
    for (const id of ['entity-card:orderkit/order', 'entity-content:orderkit/order', 'entity-card:orderkit/team', 'page:orderkit/approvals', 'page:orderkit/orders', 'scaffolder-form-field:orderkit/team', 'scaffolder-form-field:orderkit/plan', 'api:orderkit']) {
      expect(plugin.getExtension(id as any)).toBeDefined();
    }
  });

  it('shows the card for orders only, and the tab as Order', async () => {
    const card = createExtensionTester(plugin.getExtension('entity-card:orderkit/order'));
    const tab = createExtensionTester(plugin.getExtension('entity-content:orderkit/order'));
    const isOrder = card.get(EntityCardBlueprint.dataRefs.filterFunction)!;

    expect(isOrder(orderEntity)).toBe(true);
    expect(isOrder({ ...orderEntity, metadata: { name: 'other' } })).toBe(false);
    expect(tab.get(EntityContentBlueprint.dataRefs.title)).toBe('Order');
    await renderInTestApp(<EntityProvider entity={orderEntity}>{card.reactElement()}</EntityProvider>, {
      apis: [[orderkitApiRef, clientOf({ 'GET /v1/orders/garage-ae86/view': { body: VIEW } })]],
    });
    expect(await screen.findByTestId('orderkit-phase')).toHaveTextContent('Ready');
  });
});
