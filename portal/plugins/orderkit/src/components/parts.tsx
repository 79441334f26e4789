import { ReactNode, useEffect, useReducer } from 'react';
import { EntityRefLink } from '@backstage/plugin-catalog-react';
import { Alert, Button, Flex, Skeleton, Text, VisuallyHidden } from '@backstage/ui';
import { Difference, Kit, ServiceError } from '../api';
import { ago, cut, fieldTitle, labelled, phaseOf, SOFT, tint, web } from './words';

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
      style={{ color: tint(tone) }}
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
    <a href={address} target="_blank" rel="noopener noreferrer" style={{ textDecoration: 'underline' }}>
      {children}
    </a>
  ) : (
    <span>{children}</span>
  );
}

export function Fact({ title, children }: { title: string; children: ReactNode }) {
  return (
    <Flex direction="column" gap="0.5" style={{ minWidth: 120, maxWidth: 360, overflowWrap: 'anywhere' }}>
      <Text as="span" variant="body-small" style={SOFT}>
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
    <Text as="p" style={SOFT}>
      {children}
    </Text>
  );
}

function FromTo({ row, kit }: { row: Difference; kit?: Kit }) {
  return (
    <>
      <del>{labelled(row.from, row.field, kit)}</del> <span role="img" aria-label="becomes">
        →
      </span>{' '}
      <ins>{labelled(row.to, row.field, kit)}</ins>
    </>
  );
}

const ROWS_MAX = 40;

/** What changes, field by field; with a kit, in the words of its form. */
export function Fields({ rows, kit }: { rows: Difference[]; kit?: Kit }) {
  return (
    <ul style={{ margin: 0, paddingInlineStart: 20, overflowWrap: 'anywhere' }}>
      {rows.slice(0, ROWS_MAX).map((row, index) => (
        <li key={index}>
          <code title={cut(row.field, 200)}>{fieldTitle(row.field, kit)}</code> <FromTo row={row} kit={kit} />
        </li>
      ))}
      {rows.length > ROWS_MAX && <li>and {rows.length - ROWS_MAX} more</li>}
    </ul>
  );
}

/** An order's name, which leads to its page in the catalog. */
export function OrderLink({ order }: { order: string }) {
  return (
    <EntityRefLink entityRef={{ kind: 'component', namespace: 'default', name: order }}>{cut(order, 80)}</EntityRefLink>
  );
}
