import { ReactNode, useEffect, useReducer } from 'react';
import { Alert, Button, Flex, Skeleton, Text, VisuallyHidden } from '@backstage/ui';
import { Difference, ServiceError } from '../api';
import { ago, cut, phaseOf, shown, web } from './words';

/** "3 seconds ago" becomes wrong while somebody looks at it. */
const TICK_MS = 5_000;

/** Pieces that several cards and panels are made of. */

export function Phase({ name, large = false }: { name: string; large?: boolean }) {
  const { tone, sign, title } = phaseOf(name);
  return (
    <Text
      as="span"
      variant={large ? 'title-small' : 'body-medium'}
      weight="bold"
      color={tone ?? 'secondary'}
      data-testid="orderkit-phase"
    >
      <span aria-hidden="true">{sign} </span>
      {title}
    </Text>
  );
}

export function When({ time }: { time: string | null | undefined }) {
  const [, tick] = useReducer(ticks => ticks + 1, 0);
  useEffect(() => {
    const timer = setInterval(tick, TICK_MS);
    return () => clearInterval(timer);
  }, []);
  return time ? (
    <time dateTime={cut(time, 40)} title={cut(time, 40)}>
      {ago(time)}
    </time>
  ) : null;
}

/** An address as a link, if a browser may open it; otherwise as the text that it is. */
export function Web({ to, children }: { to: string | null | undefined; children: ReactNode }) {
  const address = web(to);
  return address ? (
    <a href={address} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  ) : (
    <span>{children}</span>
  );
}

export function Fact({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Flex direction="column" gap="0.5" style={{ minWidth: 120, maxWidth: 360, overflowWrap: 'anywhere' }}>
      <Text as="span" variant="body-small" color="secondary">
        {title}
      </Text>
      <Text as="span" variant="body-medium">
        {children}
      </Text>
    </Flex>
  );
}

export function Heading({ children }: { children: ReactNode }) {
  return (
    <Text as="h3" variant="title-x-small" weight="bold">
      {children}
    </Text>
  );
}

/** What was refused or went wrong, with the way out; never a stack trace. `looking`: nothing was asked but to see. */
export function Problem({
  error,
  onRetry,
  looking = false,
}: {
  error: ServiceError;
  onRetry?: () => void;
  looking?: boolean;
}) {
  const unseen = looking && error.forbidden;
  return (
    <div role="alert">
      <Alert
        status={unseen ? 'info' : 'danger'}
        icon
        title={unseen ? 'You may not see this' : cut(error.message)}
        description={unseen ? `${cut(error.message)} ${cut(error.hint)}` : cut(error.hint)}
        customActions={
          onRetry && !unseen ? (
            <Button size="small" variant="secondary" onPress={onRetry}>
              Try again
            </Button>
          ) : undefined
        }
      />
    </div>
  );
}

/** That what is shown may be out of date, since when and why. */
export function Stale({ error, asOf, onRetry }: { error?: ServiceError; asOf?: Date; onRetry: () => void }) {
  if (!error) return null;
  return (
    <div role="status">
      <Alert
        status="warning"
        icon
        title={`Not up to date${asOf ? ` since ${asOf.toLocaleTimeString('en-GB')}` : ''}`}
        description={cut(error.message)}
        customActions={
          <Button size="small" variant="secondary" onPress={onRetry}>
            Try again
          </Button>
        }
      />
    </div>
  );
}

export function Loading({ what, lines = 3 }: { what: string; lines?: number }) {
  return (
    <Flex direction="column" gap="2" aria-busy="true">
      <VisuallyHidden>Loading {what}</VisuallyHidden>
      {Array.from({ length: lines }, (_, line) => (
        <Skeleton key={line} width={line ? '70%' : '40%'} height={18} />
      ))}
    </Flex>
  );
}

export function Empty({ children }: { children: ReactNode }) {
  return (
    <Text as="p" color="secondary">
      {children}
    </Text>
  );
}

export function FromTo({ from, to }: { from: unknown; to: unknown }) {
  return (
    <>
      <del>{shown(from)}</del> <span aria-label="becomes">→</span> <ins>{shown(to)}</ins>
    </>
  );
}

const ROWS_MAX = 40;

export function Fields({ rows }: { rows: Difference[] }) {
  return (
    <ul style={{ margin: 0, paddingInlineStart: 20, overflowWrap: 'anywhere' }}>
      {rows.slice(0, ROWS_MAX).map((row, index) => (
        <li key={index}>
          <code>{cut(row.field, 120) || 'everything'}</code> <FromTo from={row.from} to={row.to} />
        </li>
      ))}
      {rows.length > ROWS_MAX && <li>and {rows.length - ROWS_MAX} more</li>}
    </ul>
  );
}
