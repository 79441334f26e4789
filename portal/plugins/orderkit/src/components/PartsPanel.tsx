import { useCallback } from 'react';
import { useApi } from '@backstage/frontend-plugin-api';
import { Badge, Flex, Text } from '@backstage/ui';
import { Node, ObjectKey, OrderEvent, orderkitApiRef, View } from '../api';
import { useRead } from '../useLive';
import { Empty, Heading, Loading, Problem, When } from './parts';
import { cut, SOFT, tint } from './words';

const EVENTS_MAX = 30;
const CHILDREN_MAX = 200;

const keyOf = (object: ObjectKey) => [object.apiVersion, object.kind, object.namespace ?? '', object.name].join('/');

const fails = (node: Node): boolean => Boolean(node.reason) || node.ready === 'False' || node.synced === 'False';

const leads = (node: Node): boolean => fails(node) || node.children.some(leads);

/** Green is for what says that it is ready. What has no state of its own has no colour. */
function Mark({ node }: { node: Node }) {
  if (fails(node)) {
    return (
      <span role="img" style={{ color: tint('danger') }} aria-label="not ready">
        ✕
      </span>
    );
  }
  return node.ready === 'True' ? (
    <span role="img" style={{ color: tint('success') }} aria-label="ready">
      ●
    </span>
  ) : (
    <span role="img" aria-label="has no state of its own">
      ○
    </span>
  );
}

function Branch({ node, events, top }: { node: Node; events: Map<string, OrderEvent[]>; top?: boolean }) {
  const own = events.get(keyOf(node)) ?? [];
  return (
    <li style={{ listStyle: 'none' }}>
      <details open={top || leads(node)} data-testid="orderkit-part" data-failing={fails(node)}>
        <summary style={{ cursor: 'pointer', overflowWrap: 'anywhere' }}>
          <Mark node={node} /> <strong>{cut(node.kind, 80)}</strong> <code>{cut(node.name, 120)}</code>
          {node.reason && <span style={{ color: tint('danger') }}> {cut(node.reason)}</span>}
        </summary>
        <div style={{ paddingInlineStart: 24 }}>
          <Text as="p" variant="body-small" style={SOFT}>
            {cut(node.apiVersion, 120)}
            {node.namespace && `, namespace ${cut(node.namespace, 80)}`} · Synced {cut(node.synced, 20)} · Ready{' '}
            {cut(node.ready, 20)}
          </Text>
          {own.slice(0, 5).map((event, index) => (
            <Event key={index} event={event} />
          ))}
        </div>
        {node.children.length > 0 && (
          <ul style={{ margin: 0, paddingInlineStart: 20 }}>
            {node.children.slice(0, CHILDREN_MAX).map(child => (
              <Branch key={keyOf(child)} node={child} events={events} />
            ))}
            {node.children.length > CHILDREN_MAX && <li>and {node.children.length - CHILDREN_MAX} more</li>}
          </ul>
        )}
      </details>
    </li>
  );
}

function Event({ event, named = false }: { event: OrderEvent; named?: boolean }) {
  return (
    <Flex align="baseline" gap="2" style={{ overflowWrap: 'anywhere', flexWrap: 'wrap' }}>
      {event.type === 'Warning' && <Badge size="small">Warning</Badge>}
      <Text weight="bold">{cut(event.reason, 80)}</Text>
      {named && (
        <Text style={SOFT}>
          {cut(event.object.kind, 80)} {cut(event.object.name, 120)}
        </Text>
      )}
      <Text>{cut(event.message)}</Text>
      <Text style={SOFT}>
        <When time={event.at} />
        {event.count > 1 && `, ${event.count} times`}
      </Text>
    </Flex>
  );
}

/** Everything that an order is made of, what fails unfolded, and what the cluster reported. */
export function PartsPanel({ view }: { view: View }) {
  const api = useApi(orderkitApiRef);
  // Read again when the order's row says that something moved.
  const moved = JSON.stringify([view.phase, view.reason, view.parts, view.delivered]);
  const trace = useRead(
    useCallback(signal => api.trace(view.order, signal), [api, view.order]),
    moved,
  );
  const events = useRead(
    useCallback(signal => api.events(view.order, signal), [api, view.order]),
    moved,
  );
  const byObject = new Map<string, OrderEvent[]>();
  for (const event of events.data ?? []) {
    const key = keyOf(event.object);
    byObject.set(key, [...(byObject.get(key) ?? []), event]);
  }
  return (
    <Flex direction="column" gap="4">
      {trace.error && <Problem error={trace.error} onRetry={trace.refresh} />}
      {!trace.data && !trace.error && <Loading what="the parts" lines={6} />}
      {trace.data && (
        <ul style={{ margin: 0, padding: 0 }}>
          <Branch node={trace.data.tree} events={byObject} top />
        </ul>
      )}
      <Heading>Events</Heading>
      {events.error && <Problem error={events.error} onRetry={events.refresh} />}
      {!events.data && !events.error && <Loading what="the events" />}
      {events.data?.length === 0 && <Empty>The cluster has reported nothing lately.</Empty>}
      {events.data?.slice(0, EVENTS_MAX).map((event, index) => (
        <Event key={index} event={event} named />
      ))}
    </Flex>
  );
}
