import {
  ApiBlueprint,
  configApiRef,
  createFrontendPlugin,
  discoveryApiRef,
  fetchApiRef,
} from '@backstage/frontend-plugin-api';
import { EntityCardBlueprint, EntityContentBlueprint } from '@backstage/plugin-catalog-react/alpha';
import { OrderkitClient, orderkitApiRef } from './api';
import { isOrder, isTeam } from './entities';

const serviceApi = ApiBlueprint.make({
  params: defineParams =>
    defineParams({
      api: orderkitApiRef,
      deps: { config: configApiRef, discovery: discoveryApiRef, fetcher: fetchApiRef },
      factory: ({ config, discovery, fetcher }) =>
        new OrderkitClient(discovery, fetcher, config.getOptionalString('orderkit.proxyEndpoint')),
    }),
});

const orderCard = EntityCardBlueprint.make({
  name: 'order',
  params: {
    type: 'content',
    filter: isOrder,
    loader: () => import('./components/OrderCard').then(({ OrderCard }) => <OrderCard />),
  },
});

const orderContent = EntityContentBlueprint.make({
  name: 'order',
  params: {
    path: '/order',
    title: 'Order',
    filter: isOrder,
    loader: () => import('./components/OrderTab').then(({ OrderTab }) => <OrderTab />),
  },
});

const teamCard = EntityCardBlueprint.make({
  name: 'team',
  params: {
    type: 'content',
    filter: isTeam,
    loader: () => import('./components/TeamCard').then(({ TeamCard }) => <TeamCard />),
  },
});

/** Shows orders of an Orderkit platform on the pages of their entities. */
export default createFrontendPlugin({
  pluginId: 'orderkit',
  extensions: [serviceApi, orderCard, orderContent, teamCard],
});
