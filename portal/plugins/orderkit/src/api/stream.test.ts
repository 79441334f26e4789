/** @jest-environment node */
import { createServer, IncomingMessage, Server, ServerResponse } from 'node:http';
import { AddressInfo } from 'node:net';
import { StreamEvent, StreamHub } from './stream';

/** A service whose stream a test writes. */
function service(answer: (request: IncomingMessage, response: ServerResponse) => void) {
  const server: Server = createServer(answer);
  return new Promise<{ hub: StreamHub; close: () => void }>(ready => {
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      const hub = new StreamHub((path, init) => fetch(`http://127.0.0.1:${port}${path}`, init));
      const close = () => {
        server.closeAllConnections();
        server.close();
      };
      ready({ hub, close });
    });
  });
}

const row = (order: string) => JSON.stringify({ order, team: 'ae86', phase: 'Ready' });

describe('the stream', () => {
  it('comes back where it was cut off, and is one connection for all who ask the same', async () => {
    const asked: (string | undefined)[] = [];
    const { hub, close } = await service((request, response) => {
      asked.push(request.headers['last-event-id'] as string | undefined);
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      if (asked.length === 1) {
        // An event in two pieces, then the end.
        response.write(`id: p-1\nevent: ready\ndata: {}\n\nid: p-2\nevent: order\nda`);
        setTimeout(() => response.end(`ta: ${row('garage-ae86')}\n\n`), 50);
      } else {
        response.write(`: alive\nid: p-3\n\nid: p-4\nevent: gone\ndata: {"order":"garage-ae86","team":"ae86"}\n\n`);
      }
    });
    const events: StreamEvent[] = [];
    const others: StreamEvent[] = [];
    const lives: boolean[] = [];
    const stops: (() => void)[] = [];
    const gone = new Promise<void>(done => {
      stops.push(
        hub.follow({ order: 'garage-ae86' }, { onLive: live => lives.push(live), onEvent: event => {
          events.push(event);
          if (event.kind === 'gone') setTimeout(done, 20);
        } }),
        hub.follow({ order: 'garage-ae86' }, { onLive: () => {}, onEvent: event => others.push(event) }),
      );
    });
    await gone;
    stops.forEach(stop => stop());
    close();

    expect(asked).toEqual([undefined, 'p-2']);
    expect(events.map(event => event.kind)).toEqual(['order', 'gone']);
    expect(others).toEqual(events);
    expect(lives[0]).toBe(true);
  });

  it('says that it is not live while it is refused', async () => {
    let refuse = false;
    const { hub, close } = await service((_, response) => {
      if (refuse) response.writeHead(503).end();
      else response.writeHead(200, { 'Content-Type': 'text/event-stream' }).end('id: p-1\nevent: reload\ndata: {}\n\n');
      refuse = true;
    });
    const lives: boolean[] = [];
    const stops: (() => void)[] = [];
    await new Promise<void>(done => {
      stops.push(hub.follow({ team: 'ae86' }, { onEvent: () => {}, onLive: live => {
        lives.push(live);
        if (!live) done();
      } }));
    });
    stops.forEach(stop => stop());
    close();

    expect(lives).toEqual([true, false]);
  });
});
