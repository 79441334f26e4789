/** The names that the plugin uses for what the service answers, and what it sends. */

import {
  CostLine,
  Difference,
  End,
  EndPreview,
  Events,
  HistoryEntry,
  Kits,
  ListedOrder,
  Node,
  ObjectReference as ObjectKey,
  OfferedChange,
  OpenPull as Pull,
  OrderRow as Row,
  OrderView as View,
  Orders,
  PlanAnswer as Plan,
  Planned,
  Team,
  Changed,
  Conflict,
  Costs,
  Decided,
  PendingApproval as Approval,
  Attention,
  Output,
} from './answers';

export type {
  Approval,
  Attention,
  Changed,
  Conflict,
  CostLine,
  Costs,
  Decided,
  Difference,
  End,
  EndPreview,
  HistoryEntry,
  ListedOrder,
  Node,
  ObjectKey,
  OfferedChange,
  Orders,
  Output,
  Plan,
  Planned,
  Pull,
  Row,
  Team,
  View,
};

export type Value = unknown;
export type OrderEvent = Events['events'][number];
export type Kit = Kits['kits'][number];
export type KitField = Kit['fields'][number];

export interface ChangeRequest {
  change?: string;
  values: Record<string, Value>;
  base?: string;
  reason?: string;
  acceptLoss?: boolean;
}
