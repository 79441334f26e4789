import { ReactElement } from 'react';
import { EntityProvider, entityRouteRef } from '@backstage/plugin-catalog-react';
import { renderInTestApp } from '@backstage/frontend-test-utils';
import { OrderkitClient, orderkitApiRef, View } from '../api';

/** A service as the plugin's client meets it: what each address answers; no stream unless there is one. */
export type Answers = Record<string, { status?: number; body: unknown } | (() => { status?: number; body: unknown })>;

export function clientOf(answers: Answers, asked: { path: string; body?: any; headers: Record<string, string> }[] = []) {
  const fetcher = {
    fetch: async (input: any, init: any = {}) => {
      const path = String(input).replace('http://portal/api/proxy/orderkit', '');
      if (path.startsWith('/v1/stream')) return new Promise<Response>(() => {});
      asked.push({ path, body: init.body && JSON.parse(init.body), headers: init.headers });
      const found = answers[`${init.method} ${path}`];
      const { status = 200, body } = (typeof found === 'function' ? found() : found) ?? {
        status: 404,
        body: { error: { message: `nothing at ${path}`, hint: '' } },
      };
      return { ok: status < 400, status, json: async () => body } as Response;
    },
  };
  return new OrderkitClient({ getBaseUrl: async plugin => `http://portal/api/${plugin}` }, fetcher as any);
}

export const VIEW: View = {
  order: 'garage-ae86',
  team: 'ae86',
  kit: 'garage',
  phase: 'Ready',
  reason: '',
  remedy: '',
  since: '2026-11-01T00:00:00Z',
  created: '2026-11-01T00:00:00Z',
  owner: 'user:default/takumi',
  parts: { ready: 3, total: 3, failing: null },
  outputs: [{ name: 'url', title: 'Address', value: 'https://garage.example.org/', link: true, secret: false }],
  facts: [],
  attention: [],
  cost: '12.00 EUR a month',
  costs: { currency: 'EUR', monthly: '12', upTo: '0', notKnown: [], stale: [] },
  expires: null,
  leaseWarning: null,
  approval: null,
  changeApproval: null,
  revision: 'a1b2c3d4e5f6',
  delivered: 'a1b2c3d4e5f6',
  repository: 'https://forge.example.org/ae86/garage-ae86',
  head: 'a1b2c3d4e5f6',
  values: { budget: 5 },
  pulls: [],
  lastChange: null,
  findings: [],
  observed: [],
  changes: [
    { name: 'budget', title: 'Change budget', fields: ['budget'], how: 'direct', allowed: true, whyNot: null },
  ],
};

export const KITS = {
  kits: [
    {
      name: 'garage',
      title: 'Garage',
      fields: [
        {
          path: 'budget',
          parameter: 'budget',
          title: 'Budget',
          description: '',
          type: 'integer',
          required: false,
          choices: null,
          labels: {},
        },
      ],
    },
  ],
};

export const orderEntity = {
  apiVersion: 'backstage.io/v1alpha1',
  kind: 'Component',
  metadata: { name: 'garage-ae86', annotations: { 'orderkit.dev/order': 'garage-ae86' } },
  spec: { type: 'order' },
};

export const teamEntity = {
  apiVersion: 'backstage.io/v1alpha1',
  kind: 'Group',
  metadata: { name: 'ae86' },
  spec: { type: 'team', children: [] },
};

/** Show something on an entity's page. */
export function show(element: ReactElement, client: OrderkitClient, entity: any = orderEntity) {
  return renderInTestApp(<EntityProvider entity={entity}>{element}</EntityProvider>, {
    apis: [[orderkitApiRef, client]],
    mountedRoutes: { '/catalog/:namespace/:kind/:name': entityRouteRef as any },
  });
}
