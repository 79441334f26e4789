import {
  ApiBlueprint,
  configApiRef,
  createFrontendPlugin,
  createRouteRef,
  discoveryApiRef,
  fetchApiRef,
  PageBlueprint,
} from '@backstage/frontend-plugin-api';
import { EntityCardBlueprint, EntityContentBlueprint } from '@backstage/plugin-catalog-react/alpha';
import { createFormField, FormFieldBlueprint } from '@backstage/plugin-scaffolder-react/alpha';
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

const teamField = FormFieldBlueprint.make({
  name: 'team',
  params: {
    field: () =>
      import('./components/TeamField').then(({ TeamField }) =>
        createFormField({ name: 'OrderkitTeam', component: TeamField as any }),
      ),
  },
});

const planField = FormFieldBlueprint.make({
  name: 'plan',
  params: {
    field: () =>
      import('./components/PlanField').then(({ PlanField }) =>
        createFormField({ name: 'OrderkitPlan', component: PlanField as any }),
      ),
  },
});

/** Without a route, the sidebar does not list a page. */
const ordersRoute = createRouteRef();

const ordersPage = PageBlueprint.make({
  name: 'orders',
  params: {
    path: '/orderkit/orders',
    title: 'Orders',
    routeRef: ordersRoute,
    icon: (
      <svg viewBox="0 0 24 24" width="1em" height="1em" fill="currentColor" aria-hidden="true">
        <path d="M3 5h2v2H3zm4 0h14v2H7zM3 11h2v2H3zm4 0h14v2H7zM3 17h2v2H3zm4 0h14v2H7z" />
      </svg>
    ),
    loader: () => import('./components/OrdersPage').then(({ OrdersPage }) => <OrdersPage />),
  },
});

const approvalsRoute = createRouteRef();

const approvalsPage = PageBlueprint.make({
  name: 'approvals',
  params: {
    path: '/orderkit/approvals',
    title: 'Approvals',
    routeRef: approvalsRoute,
    icon: (
      <svg viewBox="0 0 24 24" width="1em" height="1em" fill="currentColor" aria-hidden="true">
        <path d="M9.5 16.2 5.3 12l-1.4 1.4 5.6 5.6 11-11-1.4-1.4z" />
      </svg>
    ),
    loader: () => import('./components/ApprovalsPage').then(({ ApprovalsPage }) => <ApprovalsPage />),
  },
});

/** Shows orders of an Orderkit platform on the pages of their entities. */
export default createFrontendPlugin({
  pluginId: 'orderkit',
  extensions: [serviceApi, orderCard, orderContent, teamCard, teamField, planField, ordersPage, approvalsPage],
  routes: { orders: ordersRoute, approvals: approvalsRoute },
});
