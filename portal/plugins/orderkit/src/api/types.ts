/** What Orderkit's service answers, as its OpenAPI document describes it. Anything in it may be hostile text. */

export type Value = unknown;

export interface ObjectKey {
  apiVersion: string;
  kind: string;
  name: string;
  namespace?: string;
}

export interface Output {
  name: string;
  title: string;
  value: string | null;
  link: boolean;
  secret: boolean;
}

export interface Attention {
  sentence: string;
  change: string | null;
  button: string | null;
}

/** One order as lists and the stream have it. */
export interface Row {
  order: string;
  team: string;
  kit: string;
  phase: string;
  reason: string;
  remedy: string;
  since: string | null;
  created: string | null;
  owner: string | null;
  parts: { ready: number; total: number; failing: (ObjectKey & { reason: string }) | null };
  outputs: Output[];
  facts: { name: string; title: string; value: string | null }[];
  attention: Attention[];
  cost: string | null;
  expires: string | null;
  leaseWarning: string | null;
  approval: string | null;
  revision: string | null;
  delivered: string | null;
  repository: string;
}

export interface Pull {
  number: number;
  title: string;
  url: string;
  requester: string;
  plan: string | null;
  planState: string | null;
}

export interface OfferedChange {
  name: string;
  title: string;
  fields: string[];
  how: 'direct' | 'review';
  allowed: boolean;
  whyNot: string | null;
}

export interface View extends Row {
  head: string | null;
  values: Record<string, Value>;
  pulls: Pull[];
  changes: OfferedChange[];
}

export interface Node extends ObjectKey {
  synced: string;
  ready: string;
  reason: string;
  children: Node[];
}

export interface OrderEvent {
  at: string;
  type: string;
  reason: string;
  message: string;
  count: number;
  object: ObjectKey;
}

export interface Difference {
  field: string;
  from: Value;
  to: Value;
}

export interface Costs {
  currency: string;
  monthly: { before: string; after: string; difference: string };
  upTo: { before: string; after: string };
  notPriced: string[];
}

export interface Plan {
  summary: string;
  ready: boolean | null;
  unchanged: number;
  fields: Difference[];
  resources: (ObjectKey & { path: string; action: string; fields: Difference[] })[];
  dangers: { path: string; code: string; message: string }[];
  faults: { path: string; message: string; hint: string }[];
  unknowns: string[];
  costs: Costs | null;
}

export interface HistoryEntry {
  commit: string;
  when: string;
  author: string;
  summary: string;
  byHand: boolean;
  signature: string;
  requester: string;
  reason: string;
  ordered: boolean;
  fields: Difference[];
}

export interface Changed {
  state: 'unchanged' | 'planned' | 'committed' | 'proposed';
  commit: string | null;
  pull: { number: number; url: string } | null;
  plan: Plan | null;
  planWhyNot: string;
  message: string;
  url: string;
}

export interface Conflict {
  field: string;
  seen: Value;
  now: Value;
  wanted: Value;
  commit: string | null;
  author: string;
  requester: string;
}

export interface KitField {
  path: string;
  parameter: string;
  title: string;
  description: string;
  type: string;
  required: boolean;
  choices: Value[] | null;
}

export interface Kit {
  name: string;
  title: string;
  fields: KitField[];
}

/** What an end would leave, and what it may take along. */
export interface EndPreview {
  order: string;
  stays: string[];
  takes: { name: string; ask: string }[];
  repository: 'archive' | 'delete';
  unread: string;
}

export interface End {
  order: string;
  state: 'ending' | 'stopped' | 'ended';
  message: string;
  reason?: string;
  steps?: { step: string; done: string }[];
  endedAt?: string;
  gone?: ObjectKey[];
  survives?: string[];
}

export interface Team {
  team: string;
  total: number;
  phases: Record<string, number>;
  orders: Row[];
  more: boolean;
  /** What its orders cost in all, if the service says so. */
  cost?: string | null;
}

export interface ChangeRequest {
  change?: string;
  values: Record<string, Value>;
  base?: string;
  reason?: string;
  acceptLoss?: boolean;
}
