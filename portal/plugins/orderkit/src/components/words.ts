import { Kit, Value } from '../api';

/** Characters of one text on a page; whoever pushes may have written ten megabytes. */
const TEXT_MAX = 600;

/** A text as it is shown: bounded, on one line, without what terminals and bidi controls would do. */
export function cut(text: unknown, most = TEXT_MAX): string {
  const whole = typeof text === 'string' ? text : String(text ?? '');
  const plain = whole
    .slice(0, most + 1)
    // eslint-disable-next-line no-control-regex
    .replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]+/g, ' ');
  return whole.length > most ? `${plain.slice(0, most)}…` : plain;
}

/** A value of a field as it is shown. */
export function shown(value: Value): string {
  if (value === null || value === undefined) return 'not set';
  return cut(typeof value === 'string' ? value : JSON.stringify(value), 200);
}

/** The field of a kit that a plan, a commit or a conflict names, as its form names it; else as it is written. */
export function fieldTitle(field: string, kit: Kit | undefined): string {
  const known = fieldOf(field, kit);
  return cut(known?.title || field, 120) || 'everything';
}

/** A value of a field as its form shows it: the label of a choice instead of the choice. */
export function labelled(value: Value, field: string, kit: Kit | undefined): string {
  const labels = fieldOf(field, kit)?.labels ?? {};
  const name = String(value);
  return Object.hasOwn(labels, name) ? cut(labels[name], 200) : shown(value);
}

function fieldOf(field: string, kit: Kit | undefined) {
  const path = field.replace(/^spec\./, '');
  return kit?.fields.find(known => known.path === path);
}

/** An address that a browser may open: the web's, and nothing that runs. */
export function web(address: string | null | undefined): string | undefined {
  if (!address || address.length > 2_000) return undefined;
  try {
    const url = new URL(address);
    return url.protocol === 'https:' || url.protocol === 'http:' ? url.href : undefined;
  } catch {
    return undefined;
  }
}

export const short = (commit: string | null | undefined) => cut(commit ?? '', 60).slice(0, 8);

/** `user:default/eve` as people say it. */
export const person = (ref: string | null | undefined) => cut(ref ?? '').replace(/^user:(default\/)?/, '');

const STEPS: [number, Intl.RelativeTimeFormatUnit][] = [
  [86_400, 'day'],
  [3_600, 'hour'],
  [60, 'minute'],
  [1, 'second'],
];

/** A time as it is from now: "3 minutes ago", "in 2 days"; as it is written, if it is none. */
export function ago(time: string | null | undefined, now = Date.now()): string {
  const at = Date.parse(time ?? '');
  if (Number.isNaN(at)) return cut(time ?? '');
  const seconds = Math.round((at - now) / 1_000);
  const [size, unit] = STEPS.find(([least]) => Math.abs(seconds) >= least) ?? [1, 'second'];
  return new Intl.RelativeTimeFormat('en', { numeric: 'auto' }).format(Math.trunc(seconds / size), unit);
}

export const count = (number: number, thing: string) => `${number} ${thing}${number === 1 ? '' : 's'}`;

export type Tone = 'success' | 'warning' | 'danger' | 'info' | undefined;

/** For a framework without its colours for texts on a tinted ground, which 0.20 calls deprecated: in light, in dark. */
const TINTS: Record<string, string> = {
  success: '#116932, #86efac',
  warning: '#92310a, #fdba74',
  danger: '#991919, #fca5a5',
  info: '#173da6, #a3cfff',
};

/** A tone as the colour of a text; the framework's plain colours of that name are too light to be read on white. */
export const tint = (tone: Tone) => (tone ? `var(--bui-fg-${tone}-on-bg, light-dark(${TINTS[tone]}))` : 'inherit');

/** Less weight than the text around it; in the framework's dark theme, its own such colour is too close to a card's. */
export const SOFT = { color: 'color-mix(in srgb, var(--bui-fg-primary) 72%, transparent)' };

const PHASES: Record<string, { tone: Tone; sign: string; sentence: string; title?: string }> = {
  Written: { tone: 'info', sign: '◌', sentence: 'It is in Git and waits to be delivered.' },
  Waiting: { tone: 'warning', sign: '◔', sentence: 'An approver has to approve first.', title: 'Waiting for approval' },
  Delivering: { tone: 'info', sign: '◔', sentence: 'Argo CD brings it to the cluster.' },
  Assembling: { tone: 'info', sign: '◑', sentence: 'Its parts are being made.' },
  Ready: { tone: 'success', sign: '●', sentence: 'Everything is as its newest commit asks.' },
  Attention: { tone: 'warning', sign: '▲', sentence: 'It works, but someone should look at it.' },
  Failing: { tone: 'danger', sign: '✕', sentence: 'Something of it fails.' },
  Ending: { tone: undefined, sign: '◐', sentence: 'It is being taken away.' },
  Ended: { tone: undefined, sign: '○', sentence: 'It has ended.' },
};

/** How a phase looks and what it says; one that is not known looks like no state, never like a good one. */
export function phaseOf(name: string) {
  const known = Object.hasOwn(PHASES, name) ? PHASES[name] : undefined;
  return { title: cut(name, 30), ...(known ?? { tone: undefined as Tone, sign: '?', sentence: '' }) };
}
