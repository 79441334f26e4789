/**
 * What Orderkit's service answers. Anything in it may be hostile text.
 * Generated from its OpenAPI document by scripts/service_docs.py; do not edit.
 */

export type AcceptedDanger = {
  path: string;
  message: string;
  code: string;
  reason: string;
};

export type Action = 'added' | 'changed' | 'removed' | 'replaced';

export type Activity = {
  entries: ActivityEntry[];
  cursor: string | null;
};

export type ActivityEntry = {
  when: string;
  order: string;
  team: string;
  kit: string | null;
  who: string;
  byHand: boolean;
  merge: boolean;
  what: string;
  why: string | null;
  change: string | null;
  commit: string;
  repository: string;
};

export type Approvals = {
  approvals: PendingApproval[];
};

export type Attention = {
  sentence: string;
  change: string | null;
  button: string | null;
};

export type CampaignView = {
  name: string;
  reason: string;
  kit: string;
  kind: string;
  state: string;
  why: string | null;
  by: string | null;
  started: string | null;
  attempt: number;
  waves: WaveView[];
};

export type Campaigns = {
  campaigns: CampaignView[];
};

export type Changed = {
  order: string;
  state: 'committed' | 'planned' | 'proposed' | 'unchanged';
  repeated: boolean;
  operation: string;
  change: string;
  how: How;
  edits: Difference[];
  diff: string;
  commit: string | null;
  pull: Pull | null;
  otherPulls: Pull[];
  warnings: string[];
  plan: PlanAnswer | null;
  planWhyNot: string;
  message: string;
  url: string;
};

export type Conflict = {
  field: string;
  seen: unknown;
  now: unknown;
  wanted: unknown;
  commit: string | null;
  author: string;
  requester: string;
};

export type CostLine = {
  path: string;
  resource: string;
  title: string;
  reckoned: string;
  monthly: string;
  upTo: boolean;
  assumes: string;
};

export type CostStep = {
  before: string;
  after: string;
  difference: string;
};

export type CostSums = {
  sums: MonthlySum[];
  notKnown: number;
};

export type Costs = {
  currency: string;
  table: string;
  source: string;
  date: string;
  stale: string[];
  monthly: CostStep;
  upTo: LimitStep;
  before: CostLine[];
  after: CostLine[];
  notPriced: string[];
  notReckoned: string[];
};

export type Decided = {
  order: string;
  team: string;
  state: 'approved' | 'closed' | 'declined' | 'delivered' | 'waiting' | 'withdrawn';
  missing: string | null;
  doesNotCount: string | null;
  url: string | null;
  counts: boolean | null;
  number: number | null;
};

export type Difference = {
  field: string;
  from: unknown;
  to: unknown;
};

export type End = {
  order: string;
  state: 'ended' | 'ending' | 'proposed' | 'stopped';
  status: string;
  message: string;
  reason?: string;
  url?: string;
  steps?: EndStep[];
  endedAt?: string;
  repository?: string;
  gone?: ObjectReference[];
  survives?: string[];
};

export type EndPreview = {
  order: string;
  stays: string[];
  takes: TakenAlong[];
  repository: 'archive' | 'delete';
  unread: string;
};

export type EndStep = {
  step: string;
  done: string;
};

export type Error = {
  error: Refused;
};

export type Event = {
  id: string;
  event?: 'ready' | 'order' | 'gone' | 'reload';
  data?: string;
};

export type Events = {
  order: string;
  events: OrderEvent[];
};

export type Fact = {
  name: string;
  title: string;
  value: string | null;
  spend: boolean;
};

export type Failing = {
  object: ObjectReference;
  reason: string;
};

export type FailingPart = {
  apiVersion: string;
  kind: string;
  name: string;
  namespace?: string;
  reason: string;
};

export type Finding = {
  file: string;
  line: number | null;
  column: number | null;
  subject: string;
  path: string;
  reason: string;
  message: string;
  rule: string;
  value: string;
  hint: string;
  severity: string;
};

export type Gate = {
  kit: string;
  name: string;
  namespace: string;
  state: 'exhausted' | 'open';
  cause: string;
};

export type History = {
  order: string;
  entries: HistoryEntry[];
};

export type HistoryEntry = {
  commit: string;
  when: string;
  author: string;
  summary: string;
  byHand: boolean;
  merge: boolean;
  leaseNote: boolean;
  signature: SignatureVerdict;
  claims: Record<string, string>;
  requester: string;
  requesterProof: string;
  operation: string;
  change: string;
  reason: string;
  ordered: boolean;
  fields: Difference[];
  unreadable: string;
};

export type How = 'direct' | 'review';

export type IntervalAnswer = {
  currency: string | null;
  monthly: string | null;
  upTo: string;
  notKnown: string[];
  stale: string[];
  team: string;
  kit: string;
  order: string;
  begin: string;
  end: string;
  seconds: number;
  hoursPerMonth: number;
  amount: string | null;
  amountUpTo: string;
  claimedTime: boolean;
};

export type KeptPart = {
  apiVersion: string;
  kind: string;
  name: string;
  namespace?: string;
  path: string;
};

export type KitTeams = {
  kit: string;
  teams: string[];
};

export type Kits = {
  kits: ListedKit[];
};

export type Lease = {
  order: string;
  team: string;
  kit: string;
  expires: string | null;
  leftSeconds: number | null;
  began: string | null;
  latest: string | null;
  lastWarning: string | null;
  warned: Record<string, string>;
  extensions: number;
  by: string | null;
  reason: string | null;
  ending: boolean;
  then: 'end' | 'pause';
  mayExtend: boolean;
  extendBy: string | null;
  changed: boolean;
  message: string;
  remark: string | null;
  url: string | null;
};

export type LimitStep = {
  before: string;
  after: string;
};

export type ListedChange = {
  name: string;
  title: string;
  fields: string[];
  how: How;
  who: string[];
};

export type ListedField = {
  path: string;
  parameter: string;
  title: string;
  description: string;
  type: string;
  required: boolean;
  choices: unknown[] | null;
  labels: Record<string, string>;
};

export type ListedKit = {
  name: string;
  title: string;
  description: string;
  owner: string;
  tags: string[];
  fields: ListedField[];
  changes: ListedChange[];
  form: string | null;
};

export type ListedOrder = {
  order: string;
  team: string;
  kit: string;
  phase: 'Assembling' | 'Attention' | 'Delivering' | 'Ended' | 'Ending' | 'Failing' | 'Ready' | 'Waiting' | 'Written';
  reason: string;
  remedy: string;
  since: string | null;
  created: string | null;
  owner: string | null;
  parts: Parts;
  outputs: Output[];
  facts: Fact[];
  attention: Attention[];
  cost: string | null;
  costs: OrderCost | null;
  expires: string | null;
  leaseWarning: string | null;
  approval: string | null;
  changeApproval: string | null;
  revision: string | null;
  delivered: string | null;
  repository: string;
  ready: boolean;
  advice: string;
  head: string | null;
  findings: Finding[];
  xr: ObjectReference | null;
};

export type Measured = {
  team: string;
  kit: string;
  order: string;
  title: string;
  value: string;
};

export type Merged = {
  order: string;
  number: number;
  commit: string;
  approvers: string[];
};

export type MonthlySum = {
  currency: string;
  monthly: string;
  upTo: string;
  orders: number;
  partlyKnown: number;
};

export type Node = {
  apiVersion: string;
  kind: string;
  name: string;
  namespace?: string;
  synced: string;
  ready: string;
  reason: string;
  children: Node[];
};

export type ObjectReference = {
  apiVersion: string;
  kind: string;
  name: string;
  namespace?: string;
};

export type ObservedPart = {
  apiVersion: string;
  kind: string;
  name: string;
  namespace?: string;
  externalName: string | null;
  found: boolean;
  reason: string | null;
  differences: TakeoverDifference[];
};

export type OfferedChange = {
  name: string;
  title: string;
  fields: string[];
  how: How;
  allowed: boolean;
  whyNot: string | null;
};

export type OpenPull = {
  number: number;
  title: string;
  url: string;
  requester: string;
  plan: string | null;
  planState: string | null;
};

export type OrderCost = {
  currency: string | null;
  monthly: string | null;
  upTo: string;
  notKnown: string[];
  stale: string[];
};

export type OrderEvent = {
  at: string;
  type: string;
  reason: string;
  message: string;
  count: number;
  object: ObjectReference;
};

export type OrderRow = {
  order: string;
  team: string;
  kit: string;
  phase: 'Assembling' | 'Attention' | 'Delivering' | 'Ended' | 'Ending' | 'Failing' | 'Ready' | 'Waiting' | 'Written';
  reason: string;
  remedy: string;
  since: string | null;
  created: string | null;
  owner: string | null;
  parts: Parts;
  outputs: Output[];
  facts: Fact[];
  attention: Attention[];
  cost: string | null;
  costs: OrderCost | null;
  expires: string | null;
  leaseWarning: string | null;
  approval: string | null;
  changeApproval: string | null;
  revision: string | null;
  delivered: string | null;
  repository: string;
};

export type OrderView = {
  order: string;
  team: string;
  kit: string;
  phase: 'Assembling' | 'Attention' | 'Delivering' | 'Ended' | 'Ending' | 'Failing' | 'Ready' | 'Waiting' | 'Written';
  reason: string;
  remedy: string;
  since: string | null;
  created: string | null;
  owner: string | null;
  parts: Parts;
  outputs: Output[];
  facts: Fact[];
  attention: Attention[];
  cost: string | null;
  costs: OrderCost | null;
  expires: string | null;
  leaseWarning: string | null;
  approval: string | null;
  changeApproval: string | null;
  revision: string | null;
  delivered: string | null;
  repository: string;
  head: string | null;
  values: Record<string, unknown>;
  pulls: OpenPull[];
  changes: OfferedChange[];
  lastChange: HistoryEntry | null;
  findings: Finding[];
  observed: ObservedPart[];
};

export type Orders = {
  cursor: string | null;
  position: string;
  age: number;
  ledger: string;
  orders: ListedOrder[];
};

export type Output = {
  name: string;
  title: string;
  value: string | null;
  link: boolean;
  secret: boolean;
};

export type PartDrift = {
  path: string;
  message: string;
  fields: Difference[];
};

export type PartSentence = {
  path: string;
  message: string;
};

export type Parts = {
  ready: number;
  total: number;
  failing: FailingPart | null;
};

export type PendingApproval = {
  order: string;
  team: string;
  kit: string;
  requester: string;
  since: string;
  approval: string;
  url: string;
  head: string;
  number: number | null;
  yours: boolean;
  reason: string;
};

export type PlanAnswer = {
  summary: string;
  ready: boolean | null;
  approval: string | null;
  paused: PartSentence[];
  pinned: PartSentence[];
  drift: PartDrift[];
  unchanged: number;
  kept: KeptPart[];
  fields: Difference[];
  status: Difference[];
  settings: PlannedSetting[];
  settingChanges: Record<string, unknown>[];
  resources: PlannedResource[];
  waves: string[][];
  dangers: PlannedDanger[];
  accepted: AcceptedDanger[];
  faults: PlannedFault[];
  unknowns: string[];
  costs: Costs | null;
};

export type PlanSummary = {
  added: number;
  modified: number;
  removed: number;
};

export type Planned = {
  summary: PlanSummary;
  changes: Record<string, unknown>[];
  xrs: Record<string, unknown>[];
  errors?: Record<string, unknown>[];
  plan: PlanAnswer;
  order: string;
  team?: string;
  markdown: string;
};

export type PlannedDanger = {
  path: string;
  message: string;
  code: string;
};

export type PlannedFault = {
  path: string;
  message: string;
  code: string;
  field: string;
  value: string;
  rule: string;
  hint: string;
};

export type PlannedResource = {
  apiVersion: string;
  kind: string;
  name: string;
  namespace?: string;
  path: string;
  action: Action;
  fields: Difference[];
};

export type PlannedSetting = {
  path: string;
  value: unknown;
  layer: string;
};

export type Problem = {
  message: string;
  hint: string;
  field?: string;
  value?: string;
  rule?: string;
};

export type Pull = {
  number: number;
  title: string;
  state: string;
  url: string;
  requester: string | null;
};

export type Ready = {
  ready: boolean;
  checks: Record<string, string>;
  modelAgeSeconds: number;
};

export type ReasonView = {
  result: string;
  why: string;
  orders: string[];
};

export type Refused = {
  message: string;
  hint: string;
  field?: string;
  value?: string;
  rule?: string;
  problems?: Problem[];
  conflicts?: Conflict[];
  head?: string;
};

export type Registered = {
  order: string;
  team: string;
  kit: string;
  repository: string;
  ledgerCommit: string;
  changed: boolean;
  approval: string | null;
};

export type Revealed = {
  order: string;
  outputs: RevealedOutput[];
};

export type RevealedOutput = {
  name: string;
  value: string | null;
};

export type Settings = {
  spec: Record<string, unknown>;
};

export type SignatureVerdict = 'copied' | 'invalid' | 'missing' | 'none' | 'unknown key' | 'valid';

export type Statement = {
  since: string;
  until: string;
  sums: SumAnswer[];
  intervals: IntervalAnswer[];
  measured: Measured[];
};

export type SumAnswer = {
  team: string;
  kit: string;
  currency: string | null;
  orders: number;
  seconds: number;
  amount: string;
  amountUpTo: string;
  notKnownSeconds: number;
  partlyKnownSeconds: number;
  claimedSeconds: number;
  notKnown: string[];
  stale: string[];
};

export type Taken = {
  state: 'ignored' | 'queued' | 'waiting';
  repository?: string;
  number?: number;
  reason?: string;
};

export type TakenAlong = {
  name: string;
  ask: string;
};

export type TakeoverDifference = {
  field: string;
  there: string | null;
  order: string | null;
};

export type TaskDone = {
  template: string;
  order: string | null;
  created: boolean;
  requester: string;
  requesterProof: string;
  steps: Record<string, unknown>;
  output: Record<string, unknown>;
};

export type Team = {
  team: string;
  members: string[] | null;
  kits: string[] | null;
  namespaces: string[];
  limits: Record<string, unknown>;
  costs: CostSums;
  costExcess: string | null;
  total: number;
  phases: Record<string, number>;
  orders: OrderRow[];
  more: boolean;
};

export type Trace = {
  order: ListedOrder;
  tree: Node;
  failing: Failing | null;
};

export type WaveView = {
  name: string;
  orders: number;
  closed: string | null;
  counts: Record<string, number>;
  reasons: ReasonView[];
};
