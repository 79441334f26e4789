import { KitField, Value } from '../api';

type Tree = Record<string, Value>;

const plain = (value: Value): value is Tree => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The value at a dotted path; undefined if there is none. */
export function getAt(values: Tree, path: string): Value {
  let at: Value = values;
  for (const name of path.split('.')) {
    if (!plain(at) || !Object.hasOwn(at, name)) return undefined;
    at = at[name];
  }
  return at;
}

/** Entries by path, nested as the form nests them. The fields beside an entry in an object go along. */
export function toValues(current: Tree, entries: Record<string, Value>): Tree {
  const values: Tree = Object.create(null);
  for (const [path, value] of Object.entries(entries)) {
    const names = path.split('.');
    let at = values;
    names.slice(0, -1).forEach((name, depth) => {
      const there = getAt(current, names.slice(0, depth + 1).join('.'));
      if (!plain(at[name])) at[name] = plain(there) ? structuredClone(there) : {};
      at = at[name] as Tree;
    });
    at[names[names.length - 1]] = value;
  }
  return { ...values };
}

/** Entries without those of fields, above and below them; a conflict names them as the XR does, below `spec`. */
export function withoutPaths(entries: Record<string, Value>, fields: string[]): Record<string, Value> {
  const paths = fields.map(field => field.replace(/^spec\./, ''));
  const within = (one: string, other: string) => one === other || one.startsWith(`${other}.`);
  return Object.fromEntries(
    Object.entries(entries).filter(([entry]) => !paths.some(path => within(path, entry) || within(entry, path))),
  );
}

/** The kit's fields that a change has, with those below them; one that has no form is entered as JSON. */
export function fieldsOf(fields: KitField[], paths: string[]): KitField[] {
  return paths.flatMap(path => {
    const below = fields.filter(field => field.path === path || field.path.startsWith(`${path}.`));
    if (below.length) return below;
    return [{ path, parameter: path, title: path, description: '', type: 'object', required: false, choices: null, labels: {} }];
  });
}
