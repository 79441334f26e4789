import { useCallback, useEffect, useState } from 'react';
import { useApi } from '@backstage/frontend-plugin-api';
import { Alert, Button, Container, Flex, Text, TextField } from '@backstage/ui';
import { Approval, Decided, orderkitApiRef, ServiceError } from '../api';
import { useRead } from '../useLive';
import { Empty, Heading, Loading, OrderLink, Problem, Web, When } from './parts';
import { count, cut, person, SOFT } from './words';

const LOOK_MS = 30_000;

/** What became of a decision, in a sentence. */
const OUTCOMES: Record<Decided['state'], string> = {
  approved: 'You approved it.',
  closed: 'Its pull request was closed meanwhile.',
  declined: 'You declined it.',
  delivered: 'You approved it, and it is on its way.',
  waiting: 'You approved it. It waits for others too.',
  withdrawn: 'It was withdrawn meanwhile.',
};

const keyOf = (approval: Approval) => `${approval.order} ${approval.number ?? ''}`;

function Row({ approval, onDecided }: { approval: Approval; onDecided: (text: string) => void }) {
  const api = useApi(orderkitApiRef);
  const [declining, setDeclining] = useState(false);
  const [reason, setReason] = useState('');
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ServiceError>();
  const name = cut(approval.order, 80);
  const decide = async (decision: 'approve' | 'decline') => {
    setBusy(true);
    setError(undefined);
    try {
      const decided = await api.decide(approval, decision, reason.trim());
      const outcome = OUTCOMES[decided.state] ?? `It is ${cut(decided.state, 30)} now.`;
      onDecided(`${name}: ${cut(decided.doesNotCount ?? '') || outcome} ${cut(decided.missing ?? '')}`.trim());
    } catch (problem) {
      setError(problem as ServiceError);
      setBusy(false);
    }
  };
  return (
    <Flex direction="column" gap="2" data-testid="orderkit-approval" style={{ overflowWrap: 'anywhere' }}>
      <Flex gap="3" align="center" style={{ flexWrap: 'wrap' }}>
        {approval.number ? <OrderLink order={approval.order} /> : <Text weight="bold">{name}</Text>}
        <Web to={approval.url}>{approval.number ? `change #${approval.number}` : 'new order'}</Web>
        <Text style={SOFT}>
          {cut(approval.kit, 80)} of team {cut(approval.team, 80)}, asked for by {person(approval.requester) || 'nobody known'}{' '}
          <When time={approval.since} />
        </Text>
      </Flex>
      <Text as="p">Approval by {cut(approval.approval)}</Text>
      {error && <Problem error={error} />}
      {!approval.yours && approval.reason && <Text style={SOFT}>You cannot approve it: {cut(approval.reason)}.</Text>}
      {approval.yours && (
        <Flex gap="3" align="end" style={{ flexWrap: 'wrap' }}>
          {declining ? (
            <>
              <TextField label={`Why you decline ${name}`} value={reason} onChange={setReason} maxLength={500} />
              <Button destructive isDisabled={busy || !reason.trim()} onPress={() => decide('decline')}>
                Decline {name}
              </Button>
              <Button variant="secondary" isDisabled={busy} onPress={() => setDeclining(false)}>
                Back
              </Button>
            </>
          ) : (
            <>
              <Button isDisabled={busy} isPending={busy} onPress={() => decide('approve')}>
                Approve {name}
              </Button>
              <Button variant="secondary" isDisabled={busy} onPress={() => setDeclining(true)}>
                Decline…
              </Button>
            </>
          )}
        </Flex>
      )}
    </Flex>
  );
}

/** What waits for the approval of whoever looks, and of others in their teams. */
export function ApprovalsPage() {
  const api = useApi(orderkitApiRef);
  const { data, error, refresh } = useRead(useCallback(signal => api.approvals(signal), [api]));
  const [done, setDone] = useState<string>();
  useEffect(() => {
    const timer = setInterval(refresh, LOOK_MS);
    return () => clearInterval(timer);
  }, [refresh]);
  const decided = (text: string) => {
    setDone(text);
    refresh();
  };
  const section = (title: string, approvals: Approval[], none: string) => (
    <Flex direction="column" gap="4">
      <Heading>{title}</Heading>
      {approvals.length === 0 && <Empty>{none}</Empty>}
      {approvals.map(approval => (
        <Row key={keyOf(approval)} approval={approval} onDecided={decided} />
      ))}
    </Flex>
  );
  const yours = data?.filter(approval => approval.yours) ?? [];
  const others = data?.filter(approval => !approval.yours) ?? [];
  return (
    <Container>
      <Flex direction="column" gap="6" data-testid="orderkit-approvals">
        {done && (
          <div role="status">
            <Alert status="success" icon title={done} />
          </div>
        )}
        {error && <Problem error={error} onRetry={refresh} looking />}
        {!data && !error && <Loading what="what waits for approval" lines={4} />}
        {data && section(`${count(yours.length, 'request')} for you`, yours, 'Nothing waits for your approval.')}
        {data && section(`${count(others.length, 'request')} for others`, others, 'Nothing of your teams waits for others.')}
      </Flex>
    </Container>
  );
}
