/** One message of a stream of Server-Sent Events; without a `type` it only says that the stream lives. */
export interface ServerSentEvent {
  id: string;
  type: string;
  data: string;
}

const EVENT_MAX_CHARS = 2_000_000;

/**
 * Read a stream of Server-Sent Events as the service writes them, as many at once as have arrived.
 *
 * @throws Error if nothing arrives for `silenceMs`, or an event is too long.
 */
export async function* serverSentEvents(
  body: ReadableStream<Uint8Array>,
  silenceMs: number,
): AsyncGenerator<ServerSentEvent[]> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await inTime(reader.read(), silenceMs);
      if (done) {
        return;
      }
      const blocks = (rest + decoder.decode(value, { stream: true })).split('\n\n');
      rest = blocks.pop() ?? '';
      if (rest.length > EVENT_MAX_CHARS) {
        throw new Error(`an event of more than ${EVENT_MAX_CHARS} characters`);
      }
      yield blocks.map(readBlock);
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function readBlock(block: string): ServerSentEvent {
  const event: ServerSentEvent = { id: '', type: '', data: '' };
  for (const line of block.split('\n')) {
    const [, field, value] = /^(id|event|data): ?(.*)$/.exec(line) ?? [];
    if (field) {
      event[field === 'event' ? 'type' : (field as 'id' | 'data')] = value;
    }
  }
  return event;
}

async function inTime<T>(promise: Promise<T>, timeoutMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const tooLong = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new Error(`the stream was silent for ${timeoutMs / 1000} s`)),
      timeoutMs,
    );
  });
  try {
    return await Promise.race([promise, tooLong]);
  } finally {
    clearTimeout(timer);
  }
}
