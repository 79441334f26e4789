import { useCallback, useEffect, useState } from 'react';
import { useApi } from '@backstage/frontend-plugin-api';
import { Alert, Button, Checkbox, Flex, Text, TextField } from '@backstage/ui';
import { End, Node, orderkitApiRef, ServiceError, View } from '../api';
import { useRead } from '../useLive';
import { Empty, Heading, Loading, Problem, When } from './parts';
import { count, cut, SOFT } from './words';

const LOOK_MS = 2_000;
const ROWS_MAX = 60;

/** What an order's resource composes, at any depth: the tree's root is the delivery, below it the resource. */
function composed(root: Node): string[] {
  const below = (node: Node): Node[] => node.children.flatMap(child => [child, ...below(child)]);
  return root.children.flatMap(below).map(part => `${part.kind} ${part.name}`);
}

function Things({ texts }: { texts: string[] }) {
  return (
    <ul style={{ margin: 0, paddingInlineStart: 20, overflowWrap: 'anywhere' }}>
      {texts.slice(0, ROWS_MAX).map((text, index) => (
        <li key={index}>{cut(text, 300)}</li>
      ))}
      {texts.length > ROWS_MAX && <li>and {texts.length - ROWS_MAX} more</li>}
    </ul>
  );
}

/** How far an end is, and at last its proof. */
function Progress({ end }: { end: End }) {
  const steps = end.steps ?? [];
  if (end.state === 'ended') {
    const gone = (end.gone ?? []).map(object => `${object.kind} ${object.name}`);
    return (
      <Flex direction="column" gap="3" data-testid="orderkit-ended">
        <Alert status="success" icon title={`${cut(end.order, 80)} has ended`} description={<When time={end.endedAt} />} />
        <Heading>Seen to be gone ({count(gone.length, 'object')})</Heading>
        <Things texts={gone} />
        {Boolean(end.survives?.length) && (
          <>
            <Heading>What stays</Heading>
            <Things texts={end.survives ?? []} />
          </>
        )}
      </Flex>
    );
  }
  return (
    <Flex direction="column" gap="3" role="status">
      <Alert
        status={end.state === 'stopped' ? 'warning' : 'info'}
        icon
        title={end.state === 'stopped' ? 'The end was cut off' : 'It is ending'}
        description={cut(end.reason || end.message)}
      />
      <Things texts={steps.map(step => `${step.step}: ${step.done}`)} />
    </Flex>
  );
}

/** What an order that cannot be read has become: its proof if it ended. */
export function Ended({ order, error }: { order: string; error: ServiceError }) {
  const api = useApi(orderkitApiRef);
  const ended = useRead(useCallback(signal => api.end(order, signal), [api, order]));
  const { refresh } = ended;
  const state = ended.data?.state;
  useEffect(() => {
    // An order is gone from lists before the last step of its end.
    if (state !== 'ending') return undefined;
    const timer = setInterval(refresh, LOOK_MS);
    return () => clearInterval(timer);
  }, [state, refresh]);
  if (ended.data) return <Progress end={ended.data} />;
  return ended.error ? <Problem error={error} /> : <Loading what="the order's end" />;
}

/** End an order: what goes and what stays, the confirmation, the steps, and the proof. */
export function EndPanel({ view, onChanged }: { view: View; onChanged: () => void }) {
  const api = useApi(orderkitApiRef);
  const preview = useRead(useCallback(signal => api.endPreview(view.order, signal), [api, view.order]));
  const trace = useRead(useCallback(signal => api.trace(view.order, signal), [api, view.order]));
  const parts = trace.data && composed(trace.data.tree);
  const [end, setEnd] = useState<End>();
  const [confirm, setConfirm] = useState('');
  const [reason, setReason] = useState('');
  const [take, setTake] = useState<Record<string, boolean>>({});
  const [error, setError] = useState<ServiceError>();
  const [busy, setBusy] = useState(false);
  const under = view.phase === 'Ending' || end?.state === 'ending';

  useEffect(() => {
    if (!under) return undefined;
    const look = () => api.end(view.order).then(setEnd, () => undefined);
    look();
    const timer = setInterval(look, LOOK_MS);
    return () => clearInterval(timer);
  }, [api, view.order, under]);

  const start = async () => {
    setBusy(true);
    setError(undefined);
    try {
      setEnd(await api.startEnd(view.order, { confirm: confirm.trim(), reason: reason || undefined, take }));
      onChanged();
    } catch (problem) {
      setError(problem as ServiceError);
    } finally {
      setBusy(false);
    }
  };
  if (end && end.state !== 'stopped') return <Progress end={end} />;
  return (
    <Flex direction="column" gap="3">
      {end && <Progress end={end} />}
      {preview.error && <Problem error={preview.error} onRetry={preview.refresh} />}
      {!preview.data && !preview.error && <Loading what="what an end would do" lines={5} />}
      {preview.data && (
        <>
          <Heading>What goes</Heading>
          {trace.error && <Problem error={trace.error} onRetry={trace.refresh} />}
          {!parts && !trace.error && <Loading what="the parts" />}
          {parts && (parts.length ? <Things texts={parts} /> : <Empty>Nothing is composed.</Empty>)}
          <Heading>What stays</Heading>
          <Things
            texts={[
              preview.data.repository === 'archive'
                ? 'Its repository, archived: every commit stays readable.'
                : 'Nothing of its repository: it is deleted.',
              ...preview.data.stays,
              'A tombstone in the ledger: the proof of its end.',
            ]}
          />
          {preview.data.unread && <Empty>{cut(preview.data.unread)}</Empty>}
          {preview.data.takes.map(entry => (
            <Checkbox
              key={entry.name}
              isSelected={take[entry.name] === true}
              onChange={yes => setTake(known => ({ ...known, [entry.name]: yes }))}
            >
              {cut(entry.ask || entry.name, 200)}
            </Checkbox>
          ))}
        </>
      )}
      <TextField
        label={`Type ${cut(view.order, 80)} to confirm`}
        name="orderkit-confirm"
        value={confirm}
        onChange={setConfirm}
        autoComplete="off"
      />
      <TextField label="Why" value={reason} onChange={setReason} maxLength={500} />
      {error && <Problem error={error} />}
      <Flex>
        <Button destructive isDisabled={busy || !confirm} isPending={busy} onPress={start}>
          End {cut(view.order, 80)}
        </Button>
      </Flex>
      <Text as="p" variant="body-small" style={SOFT}>
        Each step is recorded in the ledger before it is taken. An end that is cut off continues when you repeat it.
      </Text>
    </Flex>
  );
}
