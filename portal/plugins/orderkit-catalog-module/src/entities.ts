/**
 * Make entities of orders and kits.
 *
 * What the service says may come from whoever can push to an order: names and references have to
 * match, texts are cut and shown as text, links lead to http or https only.
 */

import {
  ComponentEntityV1alpha1,
  componentEntityV1alpha1Validator,
  Entity,
  EntityLink,
  FieldFormatEntityPolicy,
  EntityPolicies,
  NoForeignRootFieldsEntityPolicy,
  ResourceEntityV1alpha1,
  resourceEntityV1alpha1Validator,
  SchemaValidEntityPolicy,
  SystemEntityV1alpha1,
  systemEntityV1alpha1Validator,
} from '@backstage/catalog-model';
import { JsonObject, JsonValue } from '@backstage/types';
import { object, text } from './OrderkitReader';

export interface EntityOptions {
  /** The service as browsers reach it. */
  publicUrl: string;
  /** The system that orders and kits belong to, as a name; empty: none. */
  system: string;
  /** Whose the system is. */
  systemOwner: string;
  /** Whether an order links to the forms that change and end it. */
  formLinks: boolean;
}

const API_VERSION = 'backstage.io/v1alpha1';
const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const LABEL_MAX = 63;
const REFERENCE = /^[a-zA-Z]+:[a-zA-Z0-9._-]+\/[a-zA-Z0-9._@+-]+$/;
const TAG = /^[a-z0-9:+#]+(-[a-z0-9:+#]+)*$/;
const TEXT_MAX = 500;
const LINKS_MAX = 30;
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cn}\p{Cs}\p{Zl}\p{Zp}]+/gu;

const policies = EntityPolicies.allOf([
  new SchemaValidEntityPolicy(),
  new NoForeignRootFieldsEntityPolicy(),
  new FieldFormatEntityPolicy(),
]);
const validators = [
  componentEntityV1alpha1Validator,
  resourceEntityV1alpha1Validator,
  systemEntityV1alpha1Validator,
];

/** Return the reference of an order's entity. */
export function orderRef(order: JsonValue | undefined): string {
  return `component:default/${label('order', order)}`;
}

/**
 * Return the entity of an order.
 *
 * @param row - The order as `GET /v1/orders` shows it.
 * @param kit - Its kit as `GET /v1/kits` shows it; undefined: the pack does not have it any more.
 * @throws Error that names the field which is not as it should be.
 */
export function orderEntity(
  row: JsonObject,
  kit: JsonObject | undefined,
  options: EntityOptions,
): ComponentEntityV1alpha1 {
  const order = label('order', row.order);
  const team = label('team', row.team);
  const kitName = label('kit', row.kit);
  const title = line(kit?.title, 100) || kitName;
  const repository = webAddress(row.repository);
  const page = `${options.publicUrl}/v1/orders/${order}`;
  return {
    apiVersion: API_VERSION,
    kind: 'Component',
    metadata: {
      name: order,
      description: `${title} of team ${team}`,
      annotations: {
        ...located(page),
        'argocd/app-name': order,
        'orderkit.dev/order': order,
        'orderkit.dev/team': team,
        'orderkit.dev/kit': kitName,
        'orderkit.dev/phase': line(row.phase, 40) || 'Unknown',
        ...optional('orderkit.dev/ordered-by', reference(row.owner)),
        ...optional('orderkit.dev/cost', line(row.cost, 100)),
        ...optional('orderkit.dev/expires-at', line(row.expires, 40)),
        ...optional('backstage.io/view-url', repository),
        ...optional('backstage.io/source-location', repository && `url:${repository}/src/branch/main/`),
      },
      // The catalog's own list shows tags in a column, and filters by them.
      tags: [...new Set(['orderkit', kitName, line(row.phase, 40).toLowerCase()])].filter(tag => TAG.test(tag)),
      links: [
        ...link('Repository', repository),
        ...link('Console', `${options.publicUrl}/orders/${order}`),
        ...outputLinks(row),
        ...(options.formLinks ? formLinks(kit, row, page, title) : []),
      ].slice(0, LINKS_MAX),
    },
    spec: {
      type: 'order',
      lifecycle: 'production',
      owner: `group:default/${team}`,
      ...optional('system', options.system),
      dependsOn: [kitRef(kitName)],
    },
  };
}

/** Return the entity of a kit, on which its orders depend. @throws Error as {@link orderEntity}. */
export function kitEntity(kit: JsonObject, options: EntityOptions): ResourceEntityV1alpha1 {
  const name = label('kit', kit.name);
  const tags = (Array.isArray(kit.tags) ? kit.tags : []).map(text);
  return {
    apiVersion: API_VERSION,
    kind: 'Resource',
    metadata: {
      name: `kit-${name}`,
      title: line(kit.title, 100) || name,
      ...optional('description', line(kit.description)),
      annotations: { ...located(`${options.publicUrl}/v1/kits`), 'orderkit.dev/kit': name },
      tags: [...new Set(tags)].filter(tag => tag.length <= LABEL_MAX && TAG.test(tag)),
      links: link('Order one', webAddress(kit.form)),
    },
    spec: {
      type: 'kit',
      owner: reference(kit.owner) || options.systemOwner,
      ...optional('system', options.system),
    },
  };
}

/** Return the entity of the system that all of them belong to. */
export function systemEntity(options: EntityOptions): SystemEntityV1alpha1 {
  return {
    apiVersion: API_VERSION,
    kind: 'System',
    metadata: {
      name: options.system,
      description: 'What was ordered from this Orderkit platform, and what can be.',
      annotations: located(`${options.publicUrl}/v1/orders`),
      tags: ['orderkit'],
    },
    spec: { owner: options.systemOwner },
  };
}

/** Return an entity if the catalog would take it. @throws Error that says why it would not. */
export async function checked(entity: Entity): Promise<Entity> {
  const enforced = await policies.enforce(entity);
  for (const validator of validators) {
    if (await validator.check(entity)) {
      return enforced ?? entity;
    }
  }
  throw new Error(`kind ${entity.kind} is not one of the provider's`);
}

function kitRef(name: string): string {
  return `resource:default/kit-${name}`;
}

function located(address: string): Record<string, string> {
  return {
    'backstage.io/managed-by-location': `url:${address}`,
    'backstage.io/managed-by-origin-location': `url:${address}`,
  };
}

function optional<K extends string>(key: K, value: string | undefined): { [k in K]?: string } {
  return value ? ({ [key]: value } as { [k in K]: string }) : {};
}

function link(title: string, url: string | undefined): EntityLink[] {
  return url ? [{ title, url }] : [];
}

function outputLinks(row: JsonObject): EntityLink[] {
  const outputs = Array.isArray(row.outputs) ? row.outputs.slice(0, LINKS_MAX) : [];
  return outputs.flatMap(entry => {
    const output = object(entry);
    const isPublic = output?.link === true && output.secret !== true;
    const title = line(output?.title, 100) || line(output?.name, 100);
    return isPublic ? link(title, webAddress(output.value)) : [];
  });
}

/** Lead to the forms of changes and of the end, filled in by the service. */
function formLinks(
  kit: JsonObject | undefined,
  row: JsonObject,
  page: string,
  title: string,
): EntityLink[] {
  const changes = Array.isArray(kit?.changes) ? kit.changes : [];
  return [
    ...changes.flatMap(entry => {
      const name = text(object(entry)?.name);
      const isName = name.length <= LABEL_MAX && LABEL.test(name);
      const shown = line(object(entry)?.title, 100) || name;
      return isName ? link(shown, `${page}/changes/${name}/form`) : [];
    }),
    ...(kit && row.expires ? link(`Extend the ${title}`, `${page}/changes/lease/form`) : []),
    ...(kit ? link(`End the ${title}`, `${page}/end/form`) : []),
  ];
}

function label(field: string, value: JsonValue | undefined): string {
  const name = text(value);
  if (name.length > LABEL_MAX || !LABEL.test(name)) {
    throw new Error(`${field} '${line(name, 80)}' is not a lower-case name of at most 63 characters`);
  }
  return name;
}

function reference(value: JsonValue | undefined): string {
  const ref = text(value);
  return ref.length <= 253 && REFERENCE.test(ref) ? ref : '';
}

function line(value: JsonValue | undefined, max: number = TEXT_MAX): string {
  const cut = text(value).slice(0, 4 * max).replace(UNPRINTABLE, ' ').trim();
  return cut.length > max ? `${cut.slice(0, max)}…` : cut;
}

function webAddress(value: JsonValue | undefined): string | undefined {
  const address = text(value);
  if (address.length > 2000 || !URL.canParse(address)) {
    return undefined;
  }
  return /^https?:$/.test(new URL(address).protocol) ? address : undefined;
}
