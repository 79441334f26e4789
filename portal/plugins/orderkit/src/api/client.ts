import { createApiRef, DiscoveryApi, FetchApi } from '@backstage/frontend-plugin-api';
import {
  Approval,
  Changed,
  ChangeRequest,
  Conflict,
  Decided,
  End,
  EndPreview,
  HistoryEntry,
  Kit,
  Node,
  OrderEvent,
  Orders,
  Plan,
  Planned,
  Team,
  Value,
  View,
} from './types';
import { StreamHub } from './stream';

/** What the service, or the way to it, refused: a sentence, and a way out. */
export class ServiceError extends Error {
  readonly status: number;
  readonly hint: string;
  readonly conflicts: Conflict[];
  readonly head: string;

  constructor(status: number, message: string, hint = '', conflicts: Conflict[] = [], head = '') {
    super(message);
    this.name = 'ServiceError';
    this.status = status;
    this.hint = hint;
    this.conflicts = conflicts;
    this.head = head;
  }

  get forbidden(): boolean {
    return this.status === 401 || this.status === 403;
  }

  get missing(): boolean {
    return this.status === 404;
  }
}

/** Which orders: phases with commas, words in them, and how many; empty selects all. */
export interface OrdersQuery {
  phase: string;
  text: string;
  limit: number;
}

/** The operations of Orderkit's service that the plugin uses, as the person who is signed in. */
export interface OrderkitApi {
  readonly stream: StreamHub;
  view(order: string, signal?: AbortSignal): Promise<View>;
  trace(order: string, signal?: AbortSignal): Promise<{ tree: Node }>;
  events(order: string, signal?: AbortSignal): Promise<OrderEvent[]>;
  history(order: string, signal?: AbortSignal): Promise<HistoryEntry[]>;
  /** Orders of the caller's teams, the most urgent first. */
  orders(query: OrdersQuery, signal?: AbortSignal): Promise<Orders>;
  kit(name: string, signal?: AbortSignal): Promise<Kit | undefined>;
  /** Teams for which the person who is signed in may order a kit. */
  mayOrder(kit: string, signal?: AbortSignal): Promise<string[]>;
  /** What an order would make and cost; nothing is written. */
  planOrder(kit: string, values: Record<string, Value>, signal?: AbortSignal): Promise<Planned>;
  plan(order: string, request: ChangeRequest, signal?: AbortSignal): Promise<Plan>;
  change(order: string, request: ChangeRequest, key: string): Promise<Changed>;
  revert(
    order: string,
    request: { commit: string; dryRun?: boolean; reason?: string; acceptLoss?: boolean },
    key?: string,
  ): Promise<Changed>;
  reveal(order: string, output: string): Promise<string | null>;
  endPreview(order: string, signal?: AbortSignal): Promise<EndPreview>;
  end(order: string, signal?: AbortSignal): Promise<End>;
  startEnd(order: string, body: { confirm: string; reason?: string; take: Record<string, boolean> }): Promise<End>;
  team(name: string, signal?: AbortSignal): Promise<Team>;
  /** What waits for the person who is signed in, and for others in their teams. */
  approvals(signal?: AbortSignal): Promise<Approval[]>;
  /** Approve or decline what was looked at: another head by now is refused. */
  decide(approval: Approval, decision: 'approve' | 'decline', reason?: string): Promise<Decided>;
}

export const orderkitApiRef = createApiRef<OrderkitApi>({ id: 'plugin.orderkit.service' });

interface Sent {
  body?: unknown;
  key?: string;
  signal?: AbortSignal;
}

export class OrderkitClient implements OrderkitApi {
  readonly stream: StreamHub;

  private readonly discovery: DiscoveryApi;
  private readonly fetcher: FetchApi;
  private readonly endpoint: string;

  /** @param endpoint - The proxy's endpoint that leads to the service, `/orderkit` by default. */
  constructor(discovery: DiscoveryApi, fetcher: FetchApi, endpoint = '/orderkit') {
    this.discovery = discovery;
    this.fetcher = fetcher;
    this.endpoint = endpoint.startsWith('/') ? endpoint : `/${endpoint}`;
    this.stream = new StreamHub((path, init) => this.open(path, init));
  }

  view = (order: string, signal?: AbortSignal) => this.ask<View>(`${at(order)}/view`, { signal });

  trace = (order: string, signal?: AbortSignal) => this.ask<{ tree: Node }>(`${at(order)}/trace`, { signal });

  events = async (order: string, signal?: AbortSignal) =>
    (await this.ask<{ events: OrderEvent[] }>(`${at(order)}/events?limit=200`, { signal })).events;

  history = async (order: string, signal?: AbortSignal) =>
    (await this.ask<{ entries: HistoryEntry[] }>(`${at(order)}/history?limit=100`, { signal })).entries;

  orders = ({ phase, text, limit }: OrdersQuery, signal?: AbortSignal) => {
    const query = new URLSearchParams({ sort: 'phase', limit: String(limit) });
    if (phase) query.set('phase', phase);
    if (text) query.set('text', text);
    return this.ask<Orders>(`/v1/orders?${query}`, { signal });
  };

  mayOrder = async (kit: string, signal?: AbortSignal) =>
    (await this.ask<{ teams: string[] }>(`/v1/kits/${encodeURIComponent(kit)}/teams`, { signal })).teams;

  planOrder = (kit: string, values: Record<string, Value>, signal?: AbortSignal) =>
    this.ask<Planned>(`/v1/kits/${encodeURIComponent(kit)}/plan`, { body: { values }, signal });

  kit = async (name: string, signal?: AbortSignal) =>
    (await this.ask<{ kits: Kit[] }>('/v1/kits', { signal })).kits.find(kit => kit.name === name);

  plan = async (order: string, body: ChangeRequest, signal?: AbortSignal) =>
    (await this.ask<{ plan: Plan }>(`${at(order)}/plan`, { body, signal })).plan;

  change = (order: string, body: ChangeRequest, key: string) =>
    this.ask<Changed>(`${at(order)}/changes`, { body, key });

  revert = (order: string, body: { commit: string }, key?: string) =>
    this.ask<Changed>(`${at(order)}/reverts`, { body, key });

  reveal = async (order: string, output: string) => {
    const body = { names: [output] };
    const answer = await this.ask<{ outputs: { value: string | null }[] }>(`${at(order)}/outputs`, { body });
    return answer.outputs[0]?.value ?? null;
  };

  endPreview = (order: string, signal?: AbortSignal) => this.ask<EndPreview>(`${at(order)}/end/preview`, { signal });

  end = (order: string, signal?: AbortSignal) => this.ask<End>(`${at(order)}/end`, { signal });

  startEnd = (order: string, body: { confirm: string }) => this.ask<End>(`${at(order)}/end`, { body });

  team = (name: string, signal?: AbortSignal) =>
    this.ask<Team>(`/v1/teams/${encodeURIComponent(name)}`, { signal });

  approvals = async (signal?: AbortSignal) =>
    (await this.ask<{ approvals: Approval[] }>('/v1/approvals', { signal })).approvals;

  decide = ({ order, number, head }: Approval, decision: 'approve' | 'decline', reason?: string) =>
    this.ask<Decided>(`${at(order)}/approval`, {
      body: { decision, head, number: number ?? undefined, reason: reason || undefined },
    });

  private async open(path: string, init: RequestInit): Promise<Response> {
    const base = await this.discovery.getBaseUrl('proxy');
    return this.fetcher.fetch(`${base}${this.endpoint}${path}`, init);
  }

  private async ask<T>(path: string, { body, key, signal }: Sent): Promise<T> {
    const headers: Record<string, string> = { Accept: 'application/json' };
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    if (key) headers['Idempotency-Key'] = key;
    let answer: Response;
    try {
      answer = await this.open(path, {
        method: body === undefined ? 'GET' : 'POST',
        headers,
        body: body === undefined ? undefined : JSON.stringify(body),
        signal,
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      throw new ServiceError(0, 'Orderkit cannot be reached', 'Check the connection; this page tries again.');
    }
    if (!answer.ok) throw await refusal(answer);
    return (await answer.json()) as T;
  }
}

function at(order: string): string {
  return `/v1/orders/${encodeURIComponent(order)}`;
}

/** Read what was refused: by the service, or by Backstage's proxy before it. */
export async function refusal(answer: Response): Promise<ServiceError> {
  const content = await answer.json().catch(() => undefined);
  const error = (content as any)?.error;
  const message = typeof error?.message === 'string' ? error.message : '';
  if (message) {
    return new ServiceError(
      answer.status,
      message,
      typeof error.hint === 'string' ? error.hint : '',
      Array.isArray(error.conflicts) ? error.conflicts : [],
      typeof error.head === 'string' ? error.head : '',
    );
  }
  const lost = answer.status >= 500;
  return new ServiceError(
    answer.status,
    lost ? `Orderkit cannot be reached (${answer.status})` : `The portal refused the request (${answer.status})`,
    lost ? 'Its service does not answer the portal.' : '',
  );
}
