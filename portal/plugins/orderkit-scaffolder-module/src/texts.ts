/** What comes from a service is untrusted: texts are bounded, and nothing in them controls a terminal. */

const SENTENCE_MAX = 2000;
// Control, format and unassigned characters, lone surrogates: terminal escapes and bidi overrides among them.
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cn}\p{Cs}\p{Zl}\p{Zp}]+/gu;

/** Return a value as one line of printable text. */
export function oneLine(value: unknown, max: number = SENTENCE_MAX): string {
  const text = typeof value === 'string' ? value : '';
  const line = text.slice(0, 4 * max).replace(UNPRINTABLE, ' ').trim();
  return line.length > max ? `${line.slice(0, max)}…` : line;
}

/** Return an address that a browser may open, or undefined. */
export function webAddress(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > SENTENCE_MAX || !URL.canParse(value)) {
    return undefined;
  }
  const { protocol, href } = new URL(value);
  return protocol === 'https:' || protocol === 'http:' ? href : undefined;
}

/** Return a text as Markdown that shows it as it is. */
export function asMarkdown(text: string): string {
  return text.replace(/[\\`*_{}[\]()#+!<>|~]/g, '\\$&');
}

/** Join what went wrong and the way out to sentences. */
export function sentences(...parts: string[]): string {
  return parts
    .filter(part => part !== '')
    .map((part, at) => (at === 0 ? part : part[0].toUpperCase() + part.slice(1)))
    .map(part => (/[.!?…:]$/.test(part) ? part : `${part}.`))
    .join(' ');
}
