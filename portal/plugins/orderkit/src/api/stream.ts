import { Row } from './types';

/** What happened: an order is as in `row`, one has ended, or everything has to be read again. */
export type StreamEvent =
  | { kind: 'order'; row: Row }
  | { kind: 'gone'; order: string; team: string }
  | { kind: 'reload' };

export interface StreamListener {
  onEvent(event: StreamEvent): void;
  /** Whether events come at the moment; false: ask from time to time. */
  onLive(live: boolean): void;
}

type Open = (path: string, init: RequestInit) => Promise<Response>;

/** A stream that says nothing for so long is dead: the service sends its position every 15 s. */
const SILENCE_MS = 40_000;
const RETRY_MS = [500, 2_000, 5_000, 15_000, 30_000];
/** Characters of one event; more is a broken stream. */
const EVENT_MAX = 1_000_000;

class Feed {
  private readonly listeners = new Set<StreamListener>();
  private readonly ended = new AbortController();
  private readonly open: Open;
  private readonly path: string;
  private live = false;
  private position = '';
  private failures = 0;

  constructor(open: Open, path: string) {
    this.open = open;
    this.path = path;
  }

  add(listener: StreamListener) {
    this.listeners.add(listener);
    if (this.listeners.size === 1) this.run();
    else listener.onLive(this.live);
  }

  remove(listener: StreamListener): number {
    this.listeners.delete(listener);
    if (!this.listeners.size) this.ended.abort();
    return this.listeners.size;
  }

  private async run() {
    while (!this.ended.signal.aborted) {
      const connection = new AbortController();
      const stop = () => connection.abort();
      this.ended.signal.addEventListener('abort', stop);
      try {
        await this.read(connection);
      } catch {
        this.failures += 1;
      } finally {
        this.ended.signal.removeEventListener('abort', stop);
        connection.abort();
      }
      if (this.ended.signal.aborted) return;
      if (this.failures) this.say(false);
      await pause(RETRY_MS[Math.min(this.failures, RETRY_MS.length - 1)], this.ended.signal);
    }
  }

  /** Read one connection to its end; throws if it was refused or broke off. */
  private async read(connection: AbortController) {
    const headers: Record<string, string> = { Accept: 'text/event-stream' };
    if (this.position) headers['Last-Event-ID'] = this.position;
    let silence = setTimeout(() => connection.abort(), SILENCE_MS);
    try {
      const answer = await this.open(this.path, { headers, signal: connection.signal });
      if (!answer.ok || !answer.body) throw new Error(`the stream answered ${answer.status}`);
      const reader = answer.body.getReader();
      const decoder = new TextDecoder();
      let text = '';
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(silence);
        silence = setTimeout(() => connection.abort(), SILENCE_MS);
        this.failures = 0;
        this.say(true);
        text += decoder.decode(value, { stream: true });
        const blocks = text.split(/\r?\n\r?\n/);
        text = blocks.pop() ?? '';
        if (text.length > EVENT_MAX) throw new Error('an event is too long');
        blocks.forEach(block => this.take(block));
      }
    } finally {
      clearTimeout(silence);
    }
  }

  private take(block: string) {
    let name = 'message';
    let data = '';
    for (const line of block.split(/\r?\n/)) {
      const [, field, content] = /^([a-z]+): ?(.*)$/s.exec(line) ?? [];
      if (field === 'id') this.position = content;
      if (field === 'event') name = content;
      if (field === 'data') data += content;
    }
    const event = parsed(name, data);
    if (event) this.listeners.forEach(listener => listener.onEvent(event));
  }

  private say(live: boolean) {
    if (this.live === live) return;
    this.live = live;
    this.listeners.forEach(listener => listener.onLive(live));
  }
}

/**
 * The service's stream for everybody on a page: one connection for each question, which comes back
 * where it was cut off. Read with fetch, because an EventSource sends no Authorization.
 */
export class StreamHub {
  private readonly feeds = new Map<string, Feed>();
  private readonly open: Open;

  constructor(open: Open) {
    this.open = open;
  }

  /** Follow `{order}` or `{team}`; what is returned ends it. */
  follow(question: { order?: string; team?: string }, listener: StreamListener): () => void {
    const path = `/v1/stream?${new URLSearchParams(question as Record<string, string>)}`;
    let feed = this.feeds.get(path);
    if (!feed) {
      feed = new Feed(this.open, path);
      this.feeds.set(path, feed);
    }
    const followed = feed;
    followed.add(listener);
    return () => {
      if (followed.remove(listener) === 0 && this.feeds.get(path) === followed) this.feeds.delete(path);
    };
  }
}

function parsed(name: string, data: string): StreamEvent | undefined {
  if (name === 'reload') return { kind: 'reload' };
  if (name !== 'order' && name !== 'gone') return undefined;
  try {
    const content = JSON.parse(data);
    if (name === 'gone') return { kind: 'gone', order: content.order, team: content.team };
    return typeof content.order === 'string' ? { kind: 'order', row: content } : undefined;
  } catch {
    return { kind: 'reload' };
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise(done => {
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      done();
    });
  });
}
