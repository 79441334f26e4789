import { useState } from 'react';
import { Select, Switch, TextAreaField, TextField } from '@backstage/ui';
import { KitField, Value } from '../api';
import { cut } from './words';

const TEXT_MAX = 20_000;

/** One field of a change. What no single input can hold is entered as JSON; an emptied field is removed. */
export function Field({
  field,
  value,
  onChange,
}: {
  field: KitField;
  value: Value;
  onChange: (value: Value) => void;
}) {
  const common = { label: cut(field.title, 80), description: cut(field.description, 300) || undefined };
  const name = `orderkit-${field.path}`;
  if (field.choices) {
    const texts = field.choices.map(choice => JSON.stringify(choice));
    const now = JSON.stringify(value ?? null);
    return (
      <Select
        {...common}
        name={name}
        options={field.choices.map((choice, index) => ({ id: texts[index], label: cut(field.labels[String(choice)] ?? choice, 80) }))}
        value={texts.includes(now) ? now : null}
        onChange={key => onChange(JSON.parse(String(key)))}
      />
    );
  }
  if (field.type === 'boolean') {
    return <Switch label={common.label} isSelected={value === true} onChange={onChange} />;
  }
  if (field.type === 'integer' || field.type === 'number') {
    return <NumberEntry {...common} name={name} value={value} onChange={onChange} />;
  }
  if (field.type === 'string') {
    const text = typeof value === 'string' ? value : '';
    return (
      <TextField {...common} name={name} value={text.slice(0, TEXT_MAX)} onChange={entered => onChange(entered || null)} />
    );
  }
  return <JsonEntry {...common} name={name} value={value} onChange={onChange} />;
}

interface EntryProps {
  label: string;
  description?: string;
  name: string;
  value: Value;
  onChange: (value: Value) => void;
}

/** A number as it is typed; what is not one goes to the service as text, which says so. */
function NumberEntry({ value, onChange, ...common }: EntryProps) {
  const text = value === null || value === undefined ? '' : String(value);
  return (
    <TextField
      {...common}
      inputMode="decimal"
      value={text.slice(0, 60)}
      onChange={entered => {
        const number = Number(entered);
        const whole = /^-?(0|[1-9]\d*)(\.\d*[1-9])?$/.test(entered) && Number.isFinite(number);
        onChange(entered.trim() === '' ? null : (whole && number) || (whole ? 0 : entered));
      }}
    />
  );
}

function JsonEntry({ value, onChange, ...common }: EntryProps) {
  const [text, setText] = useState(value === undefined || value === null ? '' : JSON.stringify(value, null, 2).slice(0, TEXT_MAX));
  const [wrong, setWrong] = useState(false);
  return (
    <TextAreaField
      {...common}
      description={wrong ? 'This is not JSON: it is not sent.' : common.description ?? 'As JSON'}
      value={text}
      isInvalid={wrong}
      onChange={entered => {
        setText(entered);
        if (!entered.trim()) {
          setWrong(false);
          onChange(null);
          return;
        }
        try {
          onChange(JSON.parse(entered));
          setWrong(false);
        } catch {
          setWrong(true);
        }
      }}
    />
  );
}
