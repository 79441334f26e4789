import { useState } from 'react';
import { useApi } from '@backstage/frontend-plugin-api';
import { Alert, Button, Flex, Text } from '@backstage/ui';
import { orderkitApiRef, Output, ServiceError, View } from '../api';
import { Fact, Phase, Web, When } from './parts';
import { cut, person, phaseOf, short, SOFT, tint, web } from './words';

/** How an order is, why, and what to do: on the card and above the tab's panels. */
export function OrderHeader({ view, onChange }: { view: View; onChange: (change: string) => void }) {
  const { tone, sentence } = phaseOf(view.phase);
  const offered = new Map(view.changes.map(change => [change.name, change]));
  const said = view.attention.some(attention => attention.sentence === view.reason);
  const reason = view.phase === 'Waiting' && view.approval ? view.approval : view.reason;
  return (
    <Flex direction="column" gap="3">
      <Flex align="center" gap="3" style={{ flexWrap: 'wrap' }}>
        <Phase name={view.phase} large />
        {view.since && (
          <Text as="span" style={SOFT}>
            <When time={view.since} />
          </Text>
        )}
        {!reason && <Text as="span">{sentence}</Text>}
      </Flex>
      {reason && !said && (
        <Alert status={tone === 'success' ? 'info' : tone ?? 'info'} icon title={cut(reason)} description={cut(view.remedy)} />
      )}
      {view.attention.map((attention, index) => {
        const change = attention.change ? offered.get(attention.change) : undefined;
        return (
          <Alert
            key={index}
            status="warning"
            icon
            title={cut(attention.sentence)}
            description={change && !change.allowed ? cut(change.whyNot) : undefined}
            customActions={
              change?.allowed ? (
                <Button size="small" onPress={() => onChange(change.name)}>
                  {cut(attention.button || change.title, 60)}
                </Button>
              ) : undefined
            }
          />
        );
      })}
    </Flex>
  );
}

/** What is known of an order at a glance. */
export function OrderFacts({ view }: { view: View }) {
  const { failing, ready, total } = view.parts;
  const commit = view.head || view.revision;
  const repository = web(view.repository);
  return (
    <Flex gap="5" style={{ flexWrap: 'wrap' }}>
      <Fact title="Parts">
        {ready} of {total} ready
        {failing && ` (${cut(failing.kind, 60)} ${cut(failing.name, 80)} fails)`}
      </Fact>
      {commit && (
        <Fact title="Commit">
          <Web to={repository && `${repository}/commit/${encodeURIComponent(commit)}`}>
            <code>{short(commit)}</code>
          </Web>
          {view.delivered && (view.delivered === commit ? ', delivered' : `, delivered: ${short(view.delivered)}`)}
        </Fact>
      )}
      {view.cost && <Fact title="Cost">{cut(view.cost, 60)}</Fact>}
      {view.expires && (
        <Fact title="Expires">
          <When time={view.expires} />
        </Fact>
      )}
      {view.approval && view.phase !== 'Waiting' && <Fact title="Approval">{cut(view.approval)}</Fact>}
      <Fact title="Kit">{cut(view.kit, 80) || 'not known'}</Fact>
      <Fact title="Team">{cut(view.team, 80)}</Fact>
      {view.owner && <Fact title="Ordered by">{person(view.owner)}</Fact>}
      {view.facts
        .filter(fact => fact.value !== null)
        .map(fact => (
          <Fact key={fact.name} title={cut(fact.title, 60)}>
            {cut(fact.value, 200)}
          </Fact>
        ))}
    </Flex>
  );
}

function OutputValue({ view, output }: { view: View; output: Output }) {
  const api = useApi(orderkitApiRef);
  const [revealed, setRevealed] = useState<string | null>();
  const [error, setError] = useState<ServiceError>();
  const reveal = () =>
    api.reveal(view.order, output.name).then(setRevealed, problem => setError(problem as ServiceError));
  if (output.secret) {
    if (error) return <span style={{ color: tint('danger') }}>{cut(error.message)}</span>;
    if (revealed !== undefined) return <code>{revealed === null ? 'not known yet' : cut(revealed, 20_000)}</code>;
    return (
      <Button size="small" variant="secondary" aria-label={`Reveal ${cut(output.title, 60)}`} onPress={reveal}>
        Reveal
      </Button>
    );
  }
  if (output.value === null) return <Text style={SOFT}>not known yet</Text>;
  return output.link ? <Web to={output.value}>{cut(output.value, 200)}</Web> : <code>{cut(output.value, 200)}</code>;
}

/** What an order gives, and who wants to change it. */
export function OrderOutputs({ view }: { view: View }) {
  return (
    <>
      {view.outputs.length > 0 && (
        <Flex gap="5" style={{ flexWrap: 'wrap' }}>
          {view.outputs.map(output => (
            <Fact key={output.name} title={cut(output.title, 60)}>
              <OutputValue view={view} output={output} />
            </Fact>
          ))}
        </Flex>
      )}
      {view.pulls.length > 0 && (
        <Flex direction="column" gap="1">
          <Text as="span" variant="body-small" style={SOFT}>
            Open pull requests
          </Text>
          {view.pulls.map(pull => (
            <Text as="p" key={pull.number} style={{ overflowWrap: 'anywhere' }}>
              <Web to={pull.url}>
                #{pull.number} {cut(pull.title, 120)}
              </Web>
              {pull.requester && `, ${person(pull.requester)}`}
              {pull.plan && `: ${cut(pull.plan, 200)}`}
            </Text>
          ))}
        </Flex>
      )}
    </>
  );
}
