import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { useApi } from '@backstage/frontend-plugin-api';
import {
  Alert,
  Button,
  Checkbox,
  Dialog,
  DialogBody,
  DialogHeader,
  Flex,
  Select,
  Text,
  TextField,
} from '@backstage/ui';
import { Changed, ChangeRequest, Conflict, Kit, orderkitApiRef, Plan, ServiceError, Value, View } from '../api';
import { useRead } from '../useLive';
import { Field } from './Field';
import { fieldsOf, getAt, withoutPaths, toValues } from './values';
import { Empty, Loading, Problem, Web } from './parts';
import { losesData, PlanView } from './PlanView';
import { cut, fieldTitle, labelled, person, short, SOFT } from './words';

const TYPING_MS = 600;

/** Entries by path; only those that somebody touched are sent. */
export type Entries = Record<string, Value>;

function useLivePlan(order: string, request: ChangeRequest | undefined) {
  const api = useApi(orderkitApiRef);
  const [plan, setPlan] = useState<Plan>();
  const [error, setError] = useState<ServiceError>();
  const [pending, setPending] = useState(false);
  const text = request && JSON.stringify(request);
  useEffect(() => {
    setError(undefined);
    if (!text) {
      setPlan(undefined);
      setPending(false);
      return undefined;
    }
    const mine = new AbortController();
    setPending(true);
    const timer = setTimeout(async () => {
      try {
        const found = await api.plan(order, JSON.parse(text), mine.signal);
        if (!mine.signal.aborted) setPlan(found);
      } catch (problem) {
        if (mine.signal.aborted) return;
        setPlan(undefined);
        setError(problem as ServiceError);
      } finally {
        if (!mine.signal.aborted) setPending(false);
      }
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
      mine.abort();
    };
  }, [api, order, text]);
  return { plan, error, pending };
}

function Conflicts({
  conflicts,
  kit,
  onMine,
  onTheirs,
}: {
  conflicts: Conflict[];
  kit: Kit;
  onMine: () => void;
  onTheirs: () => void;
}) {
  return (
    <div role="alert">
      <Alert
        status="warning"
        icon
        title="Someone changed the same meanwhile. Nothing was written."
        description={
          <table data-testid="orderkit-conflicts">
            <thead>
              <tr>
                {['Field', 'You saw', 'Now', 'You want', 'Changed by'].map(title => (
                  <th key={title} scope="col" style={{ textAlign: 'left', paddingInlineEnd: 16 }}>
                    {title}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {conflicts.slice(0, 40).map(conflict => (
                <tr key={conflict.field}>
                  <th scope="row" style={{ textAlign: 'left' }}>
                    <code title={cut(conflict.field, 200)}>{fieldTitle(conflict.field, kit)}</code>
                  </th>
                  <td>{labelled(conflict.seen, conflict.field, kit)}</td>
                  <td>{labelled(conflict.now, conflict.field, kit)}</td>
                  <td>{labelled(conflict.wanted, conflict.field, kit)}</td>
                  <td>{person(conflict.requester || conflict.author)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        }
        customActions={
          <Flex gap="2">
            <Button size="small" variant="secondary" onPress={onMine}>
              Keep mine
            </Button>
            <Button size="small" variant="secondary" onPress={onTheirs}>
              Take what is there
            </Button>
          </Flex>
        }
      />
    </div>
  );
}

function Done({ done }: { done: Changed }) {
  const who = cut(done.plan?.approval ?? '');
  const title = {
    committed: `Committed as ${short(done.commit)}. It is being delivered.`,
    proposed: `Pull request #${done.pull?.number} waits for ${who ? `approval by ${who}` : 'review'}.`,
    unchanged: 'The order has these values already; nothing was written.',
    planned: 'Nothing was written.',
  }[done.state];
  return (
    <div role="status">
      <Alert
        status="success"
        icon
        title={title}
        description={done.url ? <Web to={done.url}>{done.pull ? 'The pull request' : 'The commit'}</Web> : undefined}
      />
    </div>
  );
}

/** The form of one change, on the commit that it was opened on, with its plan beside it. */
function ChangeForm({
  view,
  name,
  kit,
  onChanged,
}: {
  view: View;
  name: string;
  kit: Kit;
  onChanged: () => void;
}) {
  const api = useApi(orderkitApiRef);
  const offered = view.changes.find(change => change.name === name);
  // What somebody looks at while they type stays what it was; only a resolved conflict moves it on.
  const [opened, setOpened] = useState({ base: view.head ?? undefined, values: view.values });
  const [entries, setEntries] = useState<Entries>({});
  const [reason, setReason] = useState('');
  const [accepts, setAccepts] = useState(false);
  const [error, setError] = useState<ServiceError>();
  const [done, setDone] = useState<Changed>();
  const [busy, setBusy] = useState(false);
  const attempt = useRef({ text: '', key: '' });
  const touched = Object.keys(entries).length > 0;
  const values = useMemo(() => toValues(opened.values, entries), [opened.values, entries]);
  const request = touched ? { change: name, values, base: opened.base } : undefined;
  const { plan, error: planError, pending } = useLivePlan(view.order, done ? undefined : request);
  const asksForLoss = losesData(plan) || /acceptLoss|deletes data/.test(`${error?.hint} ${error?.message}`);

  const submit = async () => {
    if (!request) return;
    const body: ChangeRequest = { ...request, reason: reason || undefined, acceptLoss: (asksForLoss && accepts) || undefined };
    const text = JSON.stringify(body);
    // The same request again is the same change, also if the first answer was lost.
    if (attempt.current.text !== text) attempt.current = { text, key: newKey() };
    setBusy(true);
    setError(undefined);
    try {
      setDone(await api.change(view.order, body, attempt.current.key));
      onChanged();
    } catch (problem) {
      setError(problem as ServiceError);
    } finally {
      setBusy(false);
    }
  };
  const resolve = async (dropped: string[]) => {
    try {
      const now = await api.view(view.order);
      setOpened({ base: now.head ?? undefined, values: now.values });
      setEntries(known => withoutPaths(known, dropped));
      setError(undefined);
    } catch (problem) {
      setError(problem as ServiceError);
    }
  };
  const enter = useCallback(
    (path: string, value: Value) => {
      setDone(undefined);
      setEntries(known =>
        JSON.stringify(value) === JSON.stringify(getAt(opened.values, path) ?? null)
          ? withoutPaths(known, [path])
          : { ...known, [path]: value },
      );
    },
    [opened.values],
  );

  if (!offered) return <Empty>The kit has no such change any more.</Empty>;
  if (!offered.allowed) return <Alert status="info" icon title="You may not make this change" description={cut(offered.whyNot)} />;
  return (
    <Flex direction="column" gap="3">
      {fieldsOf(kit.fields, offered.fields).map(field => (
        <Field
          key={field.path}
          field={field}
          value={field.path in entries ? entries[field.path] : getAt(opened.values, field.path)}
          onChange={value => enter(field.path, value)}
        />
      ))}
      <TextField label="Why" value={reason} onChange={setReason} maxLength={500} />
      {pending && <Loading what="the plan" lines={2} />}
      {!pending && plan && <PlanView plan={plan} kit={kit} />}
      {planError && !error && (planError.conflicts.length ? null : <Problem error={planError} />)}
      {(error ?? planError)?.conflicts.length ? (
        <Conflicts
          conflicts={(error ?? planError)!.conflicts}
          kit={kit}
          onMine={() => resolve([])}
          onTheirs={() => resolve((error ?? planError)!.conflicts.map(conflict => conflict.field))}
        />
      ) : (
        error && <Problem error={error} />
      )}
      {asksForLoss && (
        <Checkbox isSelected={accepts} onChange={setAccepts}>
          Do it even if data is lost
        </Checkbox>
      )}
      {done ? (
        <Done done={done} />
      ) : (
        <Flex gap="3" align="center" style={{ flexWrap: 'wrap' }}>
          <Button isDisabled={!touched || busy} isPending={busy} onPress={submit}>
            {offered.how === 'review' ? 'Propose it' : 'Change it'}
          </Button>
          <Text style={SOFT}>
            {offered.how === 'review'
              ? 'It becomes a pull request. Someone else has to approve it before it is delivered.'
              : 'It becomes one signed commit, which Argo CD delivers.'}
          </Text>
        </Flex>
      )}
    </Flex>
  );
}

function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, '0')).join('');
}

/** The changes of an order: which one, and its form. */
export function ChangePanel({ view, change, onChanged }: { view: View; change?: string; onChanged: () => void }) {
  const api = useApi(orderkitApiRef);
  const [chosen, setChosen] = useState(change ?? view.changes[0]?.name);
  const { data: kit, error, refresh } = useRead(
    useCallback(signal => api.kit(view.kit, signal).then(found => found ?? null), [api, view.kit]),
  );
  const offered = view.changes.find(entry => entry.name === chosen);
  if (!view.changes.length) return <Empty>The kit has no changes for this order.</Empty>;
  if (error && !kit) return <Problem error={error} onRetry={refresh} />;
  if (kit === undefined) return <Loading what="the form" />;
  if (kit === null) return <Empty>The kit {cut(view.kit, 80)} is not offered any more.</Empty>;
  return (
    <Flex direction="column" gap="4">
      {change === undefined && view.changes.length > 1 && (
        <Select
          label="What to change"
          options={view.changes.map(entry => ({ id: entry.name, label: cut(entry.title, 80) }))}
          value={chosen}
          onChange={key => setChosen(String(key))}
        />
      )}
      {offered && (
        <ChangeForm
          key={offered.name}
          view={view}
          name={offered.name}
          kit={kit}
          onChanged={onChanged}
        />
      )}
    </Flex>
  );
}

/** One change in a dialog, where a button of the card leads. */
export function ChangeDialog({
  view,
  change,
  onClose,
  onChanged,
}: {
  view: View;
  change: string;
  onClose: () => void;
  onChanged: () => void;
}) {
  const title = view.changes.find(entry => entry.name === change)?.title ?? change;
  return (
    <Dialog isOpen isDismissable onOpenChange={open => !open && onClose()} width={640}>
      <DialogHeader>
        <Text as="span">{cut(title, 80)}</Text>
      </DialogHeader>
      <DialogBody>
        <ChangePanel view={view} change={change} onChanged={onChanged} />
      </DialogBody>
    </Dialog>
  );
}
