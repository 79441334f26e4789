/**
 * The provider in a backend, on a service that lists and streams like Orderkit's.
 * `tests/e2e/test_backstage_plugin.py` plays it on the real one and a real catalog.
 */

import { createServer, Server, ServerResponse } from 'node:http';
import { AddressInfo } from 'node:net';
import { mockServices, startTestBackend, TestBackend } from '@backstage/backend-test-utils';
import { Entity, stringifyEntityRef } from '@backstage/catalog-model';
import {
  catalogProcessingExtensionPoint,
  EntityProvider,
  EntityProviderMutation,
} from '@backstage/plugin-catalog-node';
import { JsonObject } from '@backstage/types';
import orderkitCatalogModule from './index';

const TOKEN = 'okt_secret';
const KIT = {
  name: 'garage',
  title: 'Stage Kit',
  description: 'Order a complete tuning kit.',
  owner: 'group:default/platform',
  tags: ['garage', 'Not A Tag'],
  changes: [{ name: 'stage', title: 'Change the stage' }],
  form: 'https://portal.example.org/create/templates/default/garage',
};
const ROW = {
  order: 'garage-ae86',
  team: 'ae86',
  kit: 'garage',
  phase: 'Delivering',
  owner: 'user:default/eve',
  repository: 'https://git.example.org/ae86/garage-ae86',
  outputs: [
    { name: 'url', title: 'Address', value: 'https://bay.example.org', link: true, secret: false },
    { name: 'key', title: 'Key', value: 'https://secret', link: true, secret: true },
    { name: 'bad', title: 'Bad', value: 'data:text/html,<script>alert(1)</script>', link: true, secret: false },
  ],
  cost: null,
  expires: null,
};

let server: Server;
let backend: TestBackend | undefined;
let rows: JsonObject[];
let streams: ServerResponse[];
let asked: string[];
const authorizations = new Set<string | undefined>();
let status: number;
let mutations: EntityProviderMutation[];
let warnings: string[];

beforeEach(async () => {
  [rows, streams, asked, mutations, warnings, status] = [[ROW], [], [], [], [], 200];
  server = createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    authorizations.add(request.headers.authorization);
    const path = request.url!.split('?')[0];
    if (path === '/v1/stream') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('id: p:1\nevent: ready\ndata: {}\n\n');
      streams.push(response);
      return;
    }
    const body =
      path === '/v1/kits' ? { kits: [KIT] } : { orders: rows, cursor: null, position: 'p:1' };
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(status === 200 ? body : { error: { message: 'away', hint: '' } }));
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
});

afterEach(async () => {
  await backend?.stop();
  backend = undefined;
  server.closeAllConnections();
  await new Promise(resolve => server.close(resolve));
});

async function start(orderkit?: JsonObject, more: JsonObject = {}): Promise<EntityProvider | undefined> {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const config = {
    orderkit: orderkit ?? {
      url,
      publicUrl: 'https://orderkit.example.org/',
      catalog: { token: TOKEN, ...more },
    },
  };
  let provider: EntityProvider | undefined;
  const extensionPoint: any = {
    addEntityProvider: (added: EntityProvider) => {
      provider = added;
    },
  };
  const logger = mockServices.logger.mock({ warn: line => warnings.push(line) });
  logger.child.mockReturnValue(logger);
  backend = await startTestBackend({
    extensionPoints: [[catalogProcessingExtensionPoint, extensionPoint]],
    features: [
      orderkitCatalogModule,
      mockServices.rootConfig.factory({ data: config }),
      logger.factory,
    ],
  });
  await provider?.connect({
    applyMutation: async mutation => {
      mutations.push(mutation);
    },
    refresh: async () => undefined,
  });
  return provider;
}

async function until(isDone: () => boolean): Promise<void> {
  while (!isDone()) {
    await new Promise(resolve => setTimeout(resolve, 5));
  }
}

const send = (id: number, event: string, data: JsonObject) =>
  streams[streams.length - 1].write(`id: p:${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`);

function entities(mutation: EntityProviderMutation): Map<string, Entity> {
  const deferred = mutation.type === 'full' ? mutation.entities : mutation.added;
  return new Map(deferred.map(({ entity }) => [stringifyEntityRef(entity), entity]));
}

it('begins with everything, and follows the stream from there', async () => {
  await start();
  await until(() => streams.length === 1);

  const all = entities(mutations[0]);

  expect(mutations[0].type).toBe('full');
  expect([...all.keys()]).toEqual([
    'system:default/orderkit',
    'resource:default/kit-garage',
    'component:default/garage-ae86',
  ]);
  expect(asked[asked.length - 1]).toBe('GET /v1/stream?after=p%3A1');
  expect([...authorizations]).toEqual([`Bearer ${TOKEN}`]);
});

it('gives an order its owner, kit, phase and links', async () => {
  await start();
  await until(() => mutations.length === 1);

  const entity = entities(mutations[0]).get('component:default/garage-ae86')!;

  expect(entity.spec).toEqual({
    type: 'order',
    lifecycle: 'production',
    owner: 'group:default/ae86',
    system: 'orderkit',
    dependsOn: ['resource:default/kit-garage'],
  });
  expect(entity.metadata.annotations).toMatchObject({
    'argocd/app-name': 'garage-ae86',
    'orderkit.dev/order': 'garage-ae86',
    'orderkit.dev/phase': 'Delivering',
    'orderkit.dev/ordered-by': 'user:default/eve',
  });
  expect(entity.metadata.tags).toEqual(['orderkit', 'garage', 'delivering']);
  const page = 'https://orderkit.example.org/v1/orders/garage-ae86';
  expect(entity.metadata.links).toEqual([
    { title: 'Repository', url: ROW.repository },
    { title: 'Console', url: 'https://orderkit.example.org/orders/garage-ae86' },
    { title: 'Address', url: 'https://bay.example.org' },
    { title: 'Change the stage', url: `${page}/changes/stage/form` },
    { title: 'End the Stage Kit', url: `${page}/end/form` },
  ]);
});

it('links to no form where the tab of the order changes it', async () => {
  await start(undefined, { formLinks: false });
  await until(() => mutations.length === 1);

  const links = entities(mutations[0]).get('component:default/garage-ae86')!.metadata.links!;

  expect(links.map(link => link.title)).toEqual(['Repository', 'Console', 'Address']);
});

it('writes what the stream says, and only what it changes', async () => {
  await start();
  await until(() => streams.length === 1);

  send(2, 'order', { ...ROW, reason: 'not in the entity' });
  send(3, 'order', { ...ROW, phase: 'Ready' });
  await until(() => mutations.length === 2);
  send(4, 'gone', { order: 'garage-ae86', team: 'ae86' });
  await until(() => mutations.length === 3);

  const changed = entities(mutations[1]).get('component:default/garage-ae86')!;
  expect(changed.metadata.annotations!['orderkit.dev/phase']).toBe('Ready');
  expect(mutations[2]).toEqual({
    type: 'delta',
    added: [],
    removed: [{ entityRef: 'component:default/garage-ae86', locationKey: 'orderkit' }],
  });
});

it('goes on where it was when the stream is cut', async () => {
  await start();
  await until(() => streams.length === 1);
  send(7, 'order', { ...ROW, phase: 'Ready' });
  await until(() => mutations.length === 2);

  streams[0].destroy();
  await until(() => streams.length === 2);

  expect(asked[asked.length - 1]).toBe('GET /v1/stream?after=p%3A7');
  expect(mutations).toHaveLength(2);
});

it.each([
  ['the service says so', () => send(9, 'reload', {})],
  ['an event cannot be read', () => streams[0].write('id: p:9\nevent: order\ndata: {\n\n')],
])('loads everything again if %s', async (_, event) => {
  await start();
  await until(() => streams.length === 1);
  rows = [{ ...ROW, order: 'garage-rx7', team: 'rx7' }];

  event();
  await until(() => mutations.length === 2);

  expect(mutations[1].type).toBe('full');
  expect([...entities(mutations[1]).keys()]).toContain('component:default/garage-rx7');
});

it('keeps what it has while the service is away', async () => {
  await start();
  await until(() => streams.length === 1);
  status = 503;
  send(9, 'reload', {});
  await until(() => warnings.length > 0);

  expect(warnings[0]).toContain('answered 503');
  expect(mutations).toHaveLength(1);

  status = 200;
  await until(() => mutations.length === 2);
}, 20_000);

it('leaves out what is not valid, and says so, and shows the others', async () => {
  rows = [
    { ...ROW, order: '../../etc' },
    { ...ROW, order: 'a'.repeat(64) },
    { ...ROW, order: 'garage-one', team: 'x\u0000' },
    { ...ROW, order: null },
    { ...ROW, phase: '\u001b[31mReady\u202e', repository: 'file:///etc/passwd' },
  ];
  await start();
  await until(() => mutations.length === 1);

  const all = entities(mutations[0]);
  const refs = [...all.keys()].filter(ref => ref.startsWith('component:'));
  expect(refs).toEqual(['component:default/garage-ae86']);
  const { annotations, links } = all.get(refs[0])!.metadata;
  expect(annotations!['orderkit.dev/phase']).toBe('[31mReady');
  expect(annotations).not.toHaveProperty('backstage.io/view-url');
  expect(links!.map(({ title }) => title)).not.toContain('Repository');
  expect(warnings).toHaveLength(4);
  expect(warnings[0]).toMatch(/order '\.\.\/\.\.\/etc' is not a lower-case name/);
});

it('never takes an answer without a list for an empty one', async () => {
  rows = 'nothing' as any;
  await start();
  await until(() => warnings.length > 0);

  expect(warnings[0]).toContain("has no list 'orders'");
  expect(mutations).toEqual([]);
});

it('says which key is missing, and lets the catalog start', async () => {
  const provider = await start({ url: 'http://127.0.0.1:1' });

  expect(provider).toBeUndefined();
  expect(warnings[0]).toContain('orderkit.catalog.token is not configured');
});
