import { JsonObject, JsonValue } from '@backstage/types';
import { ServerSentEvent, serverSentEvents } from './events';

const PAGE = 1000;
const REQUEST_MS = 60_000;
/** The service sends something every 15 s. */
const SILENCE_MS = 45_000;

export interface Orders {
  rows: JsonObject[];
  /** Where the stream goes on from these rows. */
  position: string;
}

/** Reads orders and kits of Orderkit's service with a token of the service that may only read. */
export class OrderkitReader {
  constructor(
    private readonly url: string,
    private readonly token: string,
  ) {}

  /** Read all orders, and the position of the first page: a stream from there misses nothing. */
  async orders(signal: AbortSignal): Promise<Orders> {
    const rows: JsonObject[] = [];
    let position = '';
    let cursor = '';
    do {
      const query = new URLSearchParams({ limit: String(PAGE), ...(cursor ? { cursor } : {}) });
      const page = await this.json(`/v1/orders?${query}`, signal);
      rows.push(...objects(page.orders, 'orders'));
      position ||= text(page.position);
      cursor = text(page.cursor);
    } while (cursor);
    return { rows, position };
  }

  /** Read what can be ordered. */
  async kits(signal: AbortSignal): Promise<JsonObject[]> {
    return objects((await this.json('/v1/kits', signal)).kits, 'kits');
  }

  /** Follow changes from a position until the stream ends. */
  async *changes(position: string, signal: AbortSignal): AsyncGenerator<ServerSentEvent[]> {
    const path = `/v1/stream?${new URLSearchParams({ after: position })}`;
    const response = await this.answer(path, 'text/event-stream', signal);
    if (response.body) {
      yield* serverSentEvents(response.body, SILENCE_MS);
    }
  }

  private async json(path: string, signal: AbortSignal): Promise<JsonObject> {
    const limited = AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MS)]);
    const response = await this.answer(path, 'application/json', limited);
    const answer: JsonValue = await response.json();
    return object(answer) ?? {};
  }

  private async answer(path: string, accept: string, signal: AbortSignal): Promise<Response> {
    const headers = { Accept: accept, Authorization: `Bearer ${this.token}` };
    const response = await fetch(`${this.url}${path}`, { headers, signal, redirect: 'error' });
    if (!response.ok) {
      const said = (await response.text()).slice(0, 300);
      throw new Error(`${path.split('?')[0]} of Orderkit's service answered ${response.status}: ${said}`);
    }
    return response;
  }
}

export function object(value: JsonValue | undefined): JsonObject | undefined {
  return value !== null && typeof value === 'object' && !Array.isArray(value) ? value : undefined;
}

export function text(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}

function objects(value: JsonValue | undefined, name: string): JsonObject[] {
  if (!Array.isArray(value)) {
    // Without this, a wrong address would look like a platform without orders, and all would go.
    throw new Error(`the answer of Orderkit's service has no list '${name}'`);
  }
  return value.map(entry => object(entry) ?? {});
}
