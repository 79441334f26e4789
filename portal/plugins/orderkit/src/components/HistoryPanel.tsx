import { useCallback, useState } from 'react';
import { useApi } from '@backstage/frontend-plugin-api';
import { Alert, Badge, Button, Checkbox, Dialog, DialogBody, DialogHeader, Flex, Text, TextField } from '@backstage/ui';
import { Changed, HistoryEntry, Kit, orderkitApiRef, ServiceError, View } from '../api';
import { useKit, useRead } from '../useLive';
import { Empty, Fields, Loading, Problem, Web, When } from './parts';
import { losesData, PlanView } from './PlanView';
import { cut, person, short, SOFT, web } from './words';

/** What taking a commit back would do, and the button. */
function Revert({
  view,
  entry,
  kit,
  onClose,
  onChanged,
}: {
  view: View;
  entry: HistoryEntry;
  kit?: Kit;
  onClose: () => void;
  onChanged: () => void;
}) {
  const api = useApi(orderkitApiRef);
  const planned = useRead(
    useCallback(
      () => api.revert(view.order, { commit: entry.commit, dryRun: true }),
      [api, view.order, entry.commit],
    ),
  );
  const [key] = useState(() => `revert-${entry.commit}-${Date.now()}`);
  const [reason, setReason] = useState('');
  const [accepts, setAccepts] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ServiceError>();
  const [done, setDone] = useState<Changed>();
  const revert = async () => {
    setBusy(true);
    setError(undefined);
    try {
      const body = { commit: entry.commit, reason: reason || undefined, acceptLoss: accepts || undefined };
      setDone(await api.revert(view.order, body, key));
      onChanged();
    } catch (problem) {
      setError(problem as ServiceError);
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog isOpen isDismissable onOpenChange={open => !open && onClose()} width={640}>
      <DialogHeader>Take back {short(entry.commit)}</DialogHeader>
      <DialogBody>
        <Flex direction="column" gap="3">
          <Text as="p">{cut(entry.summary)}</Text>
          {planned.error && <Problem error={planned.error} onRetry={planned.refresh} />}
          {!planned.data && !planned.error && <Loading what="the plan" />}
          {planned.data?.plan && <PlanView plan={planned.data.plan} kit={kit} />}
          {planned.data?.planWhyNot && <Text as="p">{cut(planned.data.planWhyNot)}</Text>}
          {planned.data?.state === 'unchanged' && <Empty>There is nothing to take back: the order has the old values.</Empty>}
          <TextField label="Why" value={reason} onChange={setReason} maxLength={500} />
          {losesData(planned.data?.plan) && (
            <Checkbox isSelected={accepts} onChange={setAccepts}>
              Do it even if data is lost
            </Checkbox>
          )}
          {error && <Problem error={error} />}
          {done ? (
            <Alert
              status="success"
              icon
              title={done.pull ? `Pull request #${done.pull.number} waits for review.` : `Committed as ${short(done.commit)}.`}
              description={done.url ? <Web to={done.url}>Look at it</Web> : undefined}
            />
          ) : (
            <Flex>
              <Button
                isDisabled={busy || !planned.data || planned.data.state === 'unchanged'}
                isPending={busy}
                onPress={revert}
              >
                Take it back
              </Button>
            </Flex>
          )}
        </Flex>
      </DialogBody>
    </Dialog>
  );
}

/** Who changed an order, what, when and why; each change can be taken back. */
export function HistoryPanel({ view, onChanged }: { view: View; onChanged: () => void }) {
  const api = useApi(orderkitApiRef);
  const { data, error, refresh } = useRead(
    useCallback(signal => api.history(view.order, signal), [api, view.order]),
    view.head ?? view.revision,
  );
  const [chosen, setChosen] = useState<HistoryEntry>();
  const kit = useKit(view.kit);
  const repository = web(view.repository);
  if (error && !data) return <Problem error={error} onRetry={refresh} />;
  if (!data) return <Loading what="the history" lines={6} />;
  if (!data.length) return <Empty>Nothing was written yet.</Empty>;
  return (
    <Flex direction="column" gap="4">
      {data.map(entry => (
        <Flex direction="column" gap="1" key={entry.commit} data-testid="orderkit-commit">
          <Flex align="center" gap="2" style={{ flexWrap: 'wrap' }}>
            <Web to={repository && `${repository}/commit/${encodeURIComponent(entry.commit)}`}>
              <code>{short(entry.commit)}</code>
            </Web>
            <Text weight="bold">{cut(entry.summary, 200)}</Text>
            {entry.byHand && <Badge size="small">{entry.merge ? 'merge' : 'by hand'}</Badge>}
            {entry.signature === 'valid' && <Badge size="small">proved</Badge>}
          </Flex>
          <Text style={SOFT}>
            {person(entry.requester || entry.author)}, <When time={entry.when} />
            {entry.reason && `: ${cut(entry.reason, 300)}`}
          </Text>
          {entry.fields.length > 0 && <Fields rows={entry.fields} kit={kit} />}
          {!entry.ordered && entry.fields.length > 0 && (
            <Flex>
              <Button
                size="small"
                variant="secondary"
                aria-label={`Take back ${short(entry.commit)}`}
                onPress={() => setChosen(entry)}
              >
                Take back
              </Button>
            </Flex>
          )}
        </Flex>
      ))}
      {chosen && (
        <Revert
          view={view}
          entry={chosen}
          kit={kit}
          onClose={() => setChosen(undefined)}
          onChanged={() => {
            refresh();
            onChanged();
          }}
        />
      )}
    </Flex>
  );
}
