/** Whose entities have the plugin's cards: what the catalog says of an order, and of a team. */
export const ORDER_ANNOTATION = 'orderkit.dev/order';

export const isOrder = { [`metadata.annotations.${ORDER_ANNOTATION}`]: { $exists: true } };

export const isTeam = { kind: 'Group' };
