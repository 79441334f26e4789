/**
 * The actions as the scaffolder runs them, on a service that answers like Orderkit's.
 * `tests/e2e/test_backstage_plugin.py` plays them on the real one.
 */

import { createServer, IncomingMessage, Server } from 'node:http';
import { AddressInfo } from 'node:net';
import { mockCredentials, mockServices, startTestBackend } from '@backstage/backend-test-utils';
import { scaffolderActionsExtensionPoint, TemplateAction } from '@backstage/plugin-scaffolder-node';
import { createMockActionContext } from '@backstage/plugin-scaffolder-node-test-utils';
import { JsonObject } from '@backstage/types';
import orderkitScaffolderModule from './index';

// Nobody waits for seconds here; an aborted pause stays one.
jest.mock('node:timers/promises', () => ({
  setTimeout: (_: number, value: unknown, options: object) =>
    jest.requireActual('node:timers/promises').setTimeout(5, value, options),
}));

interface Asked {
  method: string;
  path: string;
  key: string | undefined;
  authorization: string | undefined;
  body: JsonObject;
}
type Answer = [status: number, body: JsonObject | string];

let server: Server;
let asked: Asked[];
let answers: (request: Asked) => Answer | undefined;
let actions: Map<string, TemplateAction<any, any, any>>;
let stopBackend: () => Promise<void>;

const ROW = {
  order: 'garage-ae86',
  team: 'ae86',
  phase: 'Ready',
  reason: '',
  ready: true,
  advice: '',
  parts: { ready: 3, total: 3 },
  outputs: [{ name: 'url', title: 'Address', value: 'https://bay.example.org', link: true, secret: false }],
  repository: 'https://git.example.org/ae86/garage-ae86',
};
const DELIVERING = { ...ROW, phase: 'Delivering', ready: false, reason: 'Git is ahead' };
const DONE = { template: 'garage', order: 'garage-ae86', created: true, steps: {}, output: {} };

async function bodyOf(request: IncomingMessage): Promise<JsonObject> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) {
    chunks.push(chunk);
  }
  return chunks.length ? JSON.parse(Buffer.concat(chunks).toString()) : {};
}

beforeAll(async () => {
  server = createServer(async (request, response) => {
    const { method = '', url = '', headers } = request;
    const entry = {
      method,
      path: url,
      key: headers['idempotency-key'] as string | undefined,
      authorization: headers.authorization,
      body: await bodyOf(request),
    };
    asked.push(entry);
    const answer = answers(entry);
    if (!answer) {
      request.socket.destroy(); // killed before it answered
      return;
    }
    const [status, body] = answer;
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  actions = new Map();
  const extensionPoint = {
    addActions: (...added: TemplateAction<any, any, any>[]) =>
      added.forEach(action => actions.set(action.id, action)),
  };
  const backend = await startTestBackend({
    extensionPoints: [[scaffolderActionsExtensionPoint, extensionPoint]],
    features: [
      orderkitScaffolderModule,
      mockServices.discovery.mock({ getBaseUrl: async plugin => `${base}/api/${plugin}` }).factory,
    ],
  });
  stopBackend = () => backend.stop();
});

afterAll(async () => {
  await stopBackend();
  await new Promise(resolve => server.close(resolve));
});

beforeEach(() => {
  asked = [];
});

interface Run {
  input: JsonObject;
  signal?: AbortSignal;
  isDryRun?: boolean;
  taskId?: string;
  log?: string[];
}

async function run(
  id: string,
  { input, signal, isDryRun, taskId = 'task-1', log = [] }: Run,
) {
  const logger = mockServices.logger.mock({
    info: line => log.push(line),
    warn: line => log.push(`warning: ${line}`),
  });
  const outputs: Record<string, any> = {};
  const context = {
    ...createMockActionContext({
      input,
      logger,
      task: { id: taskId },
      user: { ref: 'user:default/eve' },
      workspacePath: '/nowhere',
    }),
    signal,
    isDryRun,
    step: { id: 'order', name: 'Order' },
    getInitiatorCredentials: async () => mockCredentials.user('user:default/eve'),
    output: (name: string, value: any) => {
      outputs[name] = value;
    },
  };
  let error: Error | undefined;
  try {
    await actions.get(id)!.handler(context);
  } catch (thrown) {
    error = thrown as Error;
  }
  return { outputs, log, error };
}

const order = { kit: 'garage', values: { team_name: 'ae86', stage: 'stage2' } };
const reads = (...rows: JsonObject[]) => {
  let at = 0;
  return (request: Asked): Answer =>
    request.method === 'POST' ? [201, DONE] : [200, rows[Math.min(at++, rows.length - 1)]];
};
const refusal = (message: string, hint: string) => ({ error: { message, hint } });

describe('orderkit:order', () => {
  it('asks for the task user, through the proxy, with the id of the task', async () => {
    answers = reads(ROW);

    const { error } = await run('orderkit:order', { input: order });

    expect(error).toBeUndefined();
    expect(asked[0]).toMatchObject({
      method: 'POST',
      path: '/api/proxy/orderkit/v1/tasks',
      body: { template: 'garage', id: 'task-1', values: order.values, requester: 'user:default/eve' },
    });
    expect(asked[0].authorization).toBe(
      mockCredentials.service.header({
        onBehalfOf: mockCredentials.user('user:default/eve'),
        targetPluginId: 'proxy',
      }),
    );
  });

  it('follows the order until it is Ready, a line for each step', async () => {
    answers = reads(DELIVERING, DELIVERING, ROW);

    const { log, outputs } = await run('orderkit:order', { input: order });

    expect(log).toEqual([
      'garage-ae86 is ordered.',
      'Delivering (3 of 3 parts ready): Git is ahead',
      'Ready (3 of 3 parts ready)',
      'garage-ae86 is Ready.',
    ]);
    expect(outputs).toMatchObject({
      order: 'garage-ae86',
      phase: 'Ready',
      repository: ROW.repository,
      entityRef: 'component:default/garage-ae86',
      created: true,
      message: '`garage-ae86` is Ready \\(3 of 3 parts ready\\). Change or end it on its page in the catalog, on the tab *Order*.',
      links: [
        { title: 'Repository', url: ROW.repository },
        { title: 'Address', url: 'https://bay.example.org/' },
      ],
    });
  });

  it('ends once it is written if that is enough', async () => {
    answers = reads(DELIVERING);

    const { outputs } = await run('orderkit:order', { input: { ...order, waitFor: 'written' } });

    expect(outputs.phase).toBe('Delivering');
    expect(asked.map(({ method }) => method)).toEqual(['POST', 'GET']);
  });

  it('shows a reason in its outcome as text, not as Markdown', async () => {
    answers = reads({ ...DELIVERING, reason: '[click](https://evil.example) <b>' });

    const { outputs } = await run('orderkit:order', { input: { ...order, waitFor: 'written' } });

    expect(outputs.message).toContain('\\[click\\]\\(https://evil.example\\) \\<b\\>');
  });

  it('does not wait for a person who has to agree', async () => {
    answers = reads({ ...ROW, ready: false, phase: 'Waiting', approval: 'rx7 has to agree: cost' });

    const { error, log, outputs } = await run('orderkit:order', { input: order });

    expect(error).toBeUndefined();
    expect(outputs.phase).toBe('Waiting');
    expect(outputs.message).toContain('`garage-ae86` is ordered and waits for approval: rx7 has to agree: cost.');
    expect(log).toContain('waits for approval: rx7 has to agree: cost');
  });

  it('fails with the sentence of the service and its way out, and no stack', async () => {
    const sentence = refusal('garage-ae86 was ordered with other values', 'order another name');
    answers = () => [409, sentence];

    const { error } = await run('orderkit:order', { input: order });

    expect(error!.message).toBe('garage-ae86 was ordered with other values. Order another name.');
    expect(error!.stack).toBe(error!.message);
    expect(asked).toHaveLength(1);
  });

  it('shows texts of others as one bounded line', async () => {
    answers = () => [422, refusal(`bad \u001b[31m\u202e\n${'x'.repeat(9000)}`, '')];

    const { error } = await run('orderkit:order', { input: order });

    expect(error!.message).toMatch(/^bad +\[31m +x+…$/);
    expect(error!.message.length).toBeLessThan(2100);
  });

  it('names the proxy if something else answers', async () => {
    answers = () => [404, '<h1>Not Found</h1>'];

    const { error } = await run('orderkit:order', { input: order });

    expect(error!.message).toMatch(/proxy answered 404 .*is proxy.endpoints.\/orderkit in app-config/i);
  });

  it('repeats the same request if the service is killed before it answers', async () => {
    let killed = 0;
    answers = request =>
      request.method === 'POST' && killed++ === 0 ? undefined : reads(ROW)(request);

    const { error, log } = await run('orderkit:order', { input: order });

    expect(error).toBeUndefined();
    expect(log[0]).toMatch(/^warning: Orderkit's service cannot be reached/);
    expect(asked[1].body).toEqual(asked[0].body);
  });

  it('is not disturbed by a service that is away while it waits', async () => {
    let at = 0;
    answers = request => {
      if (request.method === 'POST') {
        return [200, { ...DONE, created: false }];
      }
      return at++ === 0 ? [503, refusal('the live model is not complete', 'ask again')] : [200, ROW];
    };

    const { error, log } = await run('orderkit:order', { input: order });

    expect(error).toBeUndefined();
    expect(log).toEqual([
      'garage-ae86 was ordered already.',
      'the live model is not complete. Ask again.',
      'Ready (3 of 3 parts ready)',
      'garage-ae86 is Ready.',
    ]);
  });

  it('writes nothing if it is cancelled before', async () => {
    const { error } = await run('orderkit:order', { input: order, signal: AbortSignal.abort() });

    expect(error!.message).toBe('Cancelled before anything was written.');
    expect(asked).toEqual([]);
  });

  it('says what is written if it is cancelled while it waits', async () => {
    const cancel = new AbortController();
    answers = request => {
      if (request.method === 'GET') {
        cancel.abort();
      }
      return reads(DELIVERING)(request);
    };

    const { error, outputs } = await run('orderkit:order', { input: order, signal: cancel.signal });

    expect(error!.message).toMatch(/^Cancelled while waiting: garage-ae86 is written/);
    expect(outputs.order).toBe('garage-ae86');
  });

  it('plans in a dry run, and asks for nothing else', async () => {
    answers = () => [200, { order: 'garage-ae86', markdown: '# Plan\n\n2 added', plan: {} }];

    const { log, outputs } = await run('orderkit:order', { input: order, isDryRun: true });
    expect(outputs.message).toContain('nothing is written');

    expect(asked.map(({ path }) => path)).toEqual(['/api/proxy/orderkit/v1/kits/garage/plan']);
    expect(log).toEqual(['Nothing is written. The plan:', '# Plan', '2 added']);
    expect(outputs.order).toBe('garage-ae86');
  });
});

describe('orderkit:change', () => {
  const input = { order: 'garage-ae86', values: { stage: 'stage3' }, base: 'a'.repeat(40) };
  const changed = {
    order: 'garage-ae86',
    state: 'committed',
    commit: 'b'.repeat(40),
    message: 'Committed as bbbbbbbb\n- stage',
    url: 'https://git.example.org/ae86/garage-ae86/commit/b',
  };

  it('is one change however often the step runs', async () => {
    let first = true;
    answers = request => {
      if (request.method === 'GET') {
        return [200, ROW];
      }
      const killed = first;
      first = false;
      return killed ? undefined : [201, changed];
    };

    await run('orderkit:change', { input });
    const again = await run('orderkit:change', { input });
    await run('orderkit:change', { input, taskId: 'task-2' });
    await run('orderkit:change', { input: { ...input, values: { stage: 'stage1' } } });

    const keys = asked.filter(({ method }) => method === 'POST').map(({ key }) => key);
    expect(keys[0]).toMatch(/^task-1\.[0-9a-f]{24}$/);
    expect(keys.slice(0, 3)).toEqual(Array(3).fill(keys[0]));
    expect(new Set(keys).size).toBe(3);
    expect(again.outputs).toMatchObject({ commit: 'b'.repeat(40), state: 'committed', phase: 'Ready' });
  });

  it('does not wait for a pull request', async () => {
    answers = request =>
      request.method === 'GET' ? [200, DELIVERING] : [201, { ...changed, state: 'proposed' }];

    const { error, outputs } = await run('orderkit:change', { input });

    expect(error).toBeUndefined();
    expect(outputs).toMatchObject({ state: 'proposed', url: changed.url });
  });

  it('checks everything in a dry run', async () => {
    answers = () => [200, { ...changed, state: 'planned', commit: null, plan: { summary: '1 changed' } }];

    const { log } = await run('orderkit:change', { input, isDryRun: true });

    expect(asked.map(({ body }) => body.dryRun)).toEqual([true]);
    expect(log).toContain('1 changed');
  });
});

describe('orderkit:end', () => {
  const input = { order: 'garage-ae86', confirm: 'garage-ae86', reason: 'over' };
  const ending = (state: string, steps: JsonObject[] = []) => ({
    order: 'garage-ae86',
    state,
    steps,
    status: '',
    message: `it is ${state}`,
    reason: 'it was cut off',
  });

  it('continues an end that was cut off, and shows its steps once', async () => {
    const steps = [
      { step: 'marking', done: 'marked' },
      { step: 'emptying', done: 'emptied' },
    ];
    const states = [
      ending('ending', steps.slice(0, 1)),
      ending('stopped'),
      ending('ending', steps),
      ending('ended'),
    ];
    const log: string[] = [];
    answers = request => {
      if (request.method === 'POST') {
        return [202, ending('ending')];
      }
      if (!log.length) {
        return [404, refusal('garage-ae86 is not ending', '')]; // the request is still on its way
      }
      return [200, states.length > 1 ? states.shift()! : states[0]];
    };

    const { outputs } = await run('orderkit:end', { input, log });

    expect(log).toEqual([
      'garage-ae86 is ending.',
      'marking: marked',
      'warning: the end stopped: it was cut off; it is continued',
      'emptying: emptied',
      'it is ended',
    ]);
    expect(outputs.phase).toBe('Ended');
    const posts = asked.filter(({ method }) => method === 'POST');
    expect(posts.map(({ body }) => body)).toEqual(Array(2).fill({ ...posts[0].body }));
  });

  it('checks the confirmation in a dry run', async () => {
    answers = reads(ROW);

    const { error } = await run('orderkit:end', {
      input: { ...input, confirm: 'other' },
      isDryRun: true,
    });

    expect(error!.message).toBe("confirm: 'other' is not the order's id. Type garage-ae86.");
    expect(asked).toEqual([]);
  });
});

it('describes every input, with examples that name the action', () => {
  expect([...actions.keys()]).toEqual(['orderkit:order', 'orderkit:change', 'orderkit:end']);
  for (const action of actions.values()) {
    const { properties } = action.schema!.input as { properties: Record<string, JsonObject> };
    expect(Object.values(properties).every(property => property.description)).toBe(true);
    expect(action.supportsDryRun).toBe(true);
    expect(action.examples!.every(({ example }) => example.includes(action.id))).toBe(true);
  }
});
