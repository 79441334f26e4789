import { useCallback } from 'react';
import { useApi } from '@backstage/frontend-plugin-api';
import { Select } from '@backstage/ui';
import { orderkitApiRef } from '../api';
import { useRead } from '../useLive';
import { Loading, Problem } from './parts';
import { cut } from './words';

const GROUP = 'group:default/';
/** So many are seen at a glance; more of them need a search. */
const FEW = 12;

/** The field of a form that Backstage hands to an extension: its value, its words, and the whole form's values. */
export interface FormField<T> {
  formData?: T;
  onChange(value: T): void;
  rawErrors?: string[];
  required?: boolean;
  schema: { title?: string; description?: string };
  uiSchema?: Record<string, any>;
  formContext?: { formData?: Record<string, unknown> };
}

/** Who orders: the teams that may order the kit, as far as the person who is signed in may act for them. */
export function TeamField({ formData, onChange, rawErrors, required, schema, uiSchema }: FormField<string>) {
  const api = useApi(orderkitApiRef);
  const kit = String(uiSchema?.['ui:options']?.kit ?? '');
  const { data: teams, error, refresh } = useRead(useCallback(signal => api.mayOrder(kit, signal), [api, kit]));
  const team = (formData ?? '').replace(GROUP, '');
  if (error && !teams) return <Problem error={error} onRetry={refresh} />;
  if (!teams) return <Loading what="your teams" lines={2} />;
  const foreign = team && !teams.includes(team);
  const none = `None of your teams may order this kit. Ask the platform team to add one.`;
  return (
    <div>
      <Select
        label={cut(schema.title, 80) || 'Team'}
        description={teams.length ? cut(schema.description, 300) || undefined : none}
        searchable={teams.length > FEW}
        searchPlaceholder="Search teams"
        isRequired={required}
        isInvalid={Boolean(foreign || rawErrors?.length)}
        options={[
          ...teams.map(name => ({ id: name, label: name })),
          ...(foreign ? [{ id: team, label: `${cut(team, 60)} (may not order this kit)` }] : []),
        ]}
        value={team || null}
        onChange={key => onChange(`${GROUP}${String(key)}`)}
      />
      {rawErrors?.map((text, index) => (
        <p key={index} role="alert">
          {cut(text)}
        </p>
      ))}
    </div>
  );
}
