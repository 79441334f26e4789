import { useEffect, useState } from 'react';
import { useApi } from '@backstage/frontend-plugin-api';
import { Flex, Text } from '@backstage/ui';
import { orderkitApiRef, Planned, ServiceError } from '../api';
import { useKit } from '../useLive';
import { Loading, Problem } from './parts';
import { PlanView } from './PlanView';
import { FormField } from './TeamField';
import { cut } from './words';

/** What an order would make, cost and wait for, before it is placed: nothing is written. */
export function PlanField({ formContext, uiSchema }: FormField<null>) {
  const api = useApi(orderkitApiRef);
  const { kit = '', parameters = [] } = (uiSchema?.['ui:options'] ?? {}) as { kit?: string; parameters?: string[] };
  const entered = formContext?.formData ?? {};
  const text = JSON.stringify(Object.fromEntries(parameters.map(name => [name, entered[name]])));
  const words = useKit(kit);
  const [planned, setPlanned] = useState<Planned>();
  const [error, setError] = useState<ServiceError>();
  const [tries, setTries] = useState(0);
  useEffect(() => {
    const mine = new AbortController();
    setPlanned(undefined);
    setError(undefined);
    api.planOrder(kit, JSON.parse(text), mine.signal).then(
      found => !mine.signal.aborted && setPlanned(found),
      problem => !mine.signal.aborted && setError(problem as ServiceError),
    );
    return () => mine.abort();
  }, [api, kit, text, tries]);
  if (error) return <Problem error={error} onRetry={() => setTries(count => count + 1)} />;
  if (!planned) return <Loading what="the plan and its price" lines={5} />;
  return (
    <Flex direction="column" gap="2">
      <Text as="p" weight="bold">
        {cut(planned.order, 80)}
      </Text>
      <PlanView plan={planned.plan} kit={words} isNew />
    </Flex>
  );
}
