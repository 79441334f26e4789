import { useCallback, useEffect, useRef, useState } from 'react';
import { useApi } from '@backstage/frontend-plugin-api';
import { Kit, orderkitApiRef, Row, ServiceError, StreamEvent, Team, View } from './api';

const POLL_MS = 10_000;
/** The stream has what the cluster says; a commit that was not delivered, and pull requests, are only in the forge. */
const FORGE_MS = 30_000;
/** Several changes of one order in a moment are read once. */
const SETTLE_MS = 300;

/** What is known, and how well: `error` beside `data` means that `data` may be out of date since `asOf`. */
export interface Live<T> {
  data?: T;
  error?: ServiceError;
  asOf?: Date;
  /** Changes in the cluster come by themselves; otherwise everything is asked for every ten seconds. */
  live: boolean;
  refresh(): void;
}

/** Read something at once and whenever the stream says so; keep what was read when reading fails. */
function useLive<T>(
  question: { order?: string; team?: string },
  read: (signal: AbortSignal) => Promise<T>,
  merge: (known: T, event: StreamEvent) => T,
): Live<T> {
  const api = useApi(orderkitApiRef);
  const [data, setData] = useState<T>();
  const [error, setError] = useState<ServiceError>();
  const [asOf, setAsOf] = useState<Date>();
  const [live, setLive] = useState(false);
  const reading = useRef<AbortController>();
  const timer = useRef<ReturnType<typeof setTimeout>>();
  const { order, team } = question;

  const refresh = useCallback(async () => {
    reading.current?.abort();
    const mine = new AbortController();
    reading.current = mine;
    try {
      const found = await read(mine.signal);
      if (mine.signal.aborted) return;
      setData(found);
      setError(undefined);
      setAsOf(new Date());
    } catch (problem) {
      if (mine.signal.aborted) return;
      const known = problem instanceof ServiceError ? problem : new ServiceError(0, String(problem));
      setError(known);
      // What is gone or forbidden is not shown any longer; what cannot be read just now is.
      if (known.forbidden || known.missing) setData(undefined);
    }
  }, [read]);

  useEffect(() => {
    refresh();
    const soon = () => {
      clearTimeout(timer.current);
      timer.current = setTimeout(refresh, SETTLE_MS);
    };
    const stop = api.stream.follow(order === undefined ? { team } : { order }, {
      onLive: setLive,
      onEvent: event => {
        setData(known => (known === undefined ? known : merge(known, event)));
        soon();
      },
    });
    return () => {
      stop();
      clearTimeout(timer.current);
      reading.current?.abort();
    };
  }, [api, order, team, refresh, merge]);

  useEffect(() => {
    const poll = setInterval(refresh, live && !error ? FORGE_MS : POLL_MS);
    return () => clearInterval(poll);
  }, [live, error, refresh]);

  return { data, error, asOf, live, refresh };
}

function intoView(view: View, event: StreamEvent): View {
  if (event.kind !== 'order' || event.row.order !== view.order) return view;
  // The stream's row knows no owner where the ledger's history was not read.
  return { ...view, ...event.row, owner: event.row.owner ?? view.owner };
}

/** An order's view, as it changes. */
export function useOrder(order: string): Live<View> {
  const api = useApi(orderkitApiRef);
  const read = useCallback((signal: AbortSignal) => api.view(order, signal), [api, order]);
  return useLive({ order }, read, intoView);
}

function intoTeam(team: Team, event: StreamEvent): Team {
  if (event.kind !== 'order' || event.row.team !== team.team) return team;
  const orders = team.orders.map((row: Row) => (row.order === event.row.order ? event.row : row));
  return { ...team, orders };
}

/** A team, as it changes. */
export function useTeam(team: string): Live<Team> {
  const api = useApi(orderkitApiRef);
  const read = useCallback((signal: AbortSignal) => api.team(team, signal), [api, team]);
  return useLive({ team }, read, intoTeam);
}

/** Something that is read once, and again on `refresh`. */
export function useRead<T>(read: (signal: AbortSignal) => Promise<T>, again: unknown = undefined) {
  const [data, setData] = useState<T>();
  const [error, setError] = useState<ServiceError>();
  const [asOf, setAsOf] = useState<Date>();
  const [count, setCount] = useState(0);
  useEffect(() => {
    const mine = new AbortController();
    read(mine.signal).then(
      found => {
        if (mine.signal.aborted) return;
        setData(found);
        setError(undefined);
        setAsOf(new Date());
      },
      problem => {
        if (mine.signal.aborted) return;
        setError(problem instanceof ServiceError ? problem : new ServiceError(0, String(problem)));
      },
    );
    return () => mine.abort();
  }, [read, again, count]);
  const refresh = useCallback(() => setCount(value => value + 1), []);
  return { data, error, asOf, refresh };
}

/** A kit, for the titles of its fields and the words of their values; undefined until it is read. */
export function useKit(name: string): Kit | undefined {
  const api = useApi(orderkitApiRef);
  return useRead(useCallback(signal => api.kit(name, signal), [api, name])).data;
}
