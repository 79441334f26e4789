import { setTimeout } from 'node:timers/promises';
import type { LoggerService } from '@backstage/backend-plugin-api';
import { Entity, stringifyEntityRef } from '@backstage/catalog-model';
import type { EntityProvider, EntityProviderConnection } from '@backstage/plugin-catalog-node';
import { JsonObject } from '@backstage/types';
import { checked, EntityOptions, kitEntity, orderEntity, orderRef, systemEntity } from './entities';
import type { ServerSentEvent } from './events';
import { object, OrderkitReader, text } from './OrderkitReader';

const LOCATION_KEY = 'orderkit';
/** Kits may change, and an entity may have been somebody else's: read all again after this. */
const RELOAD_MS = 600_000;
/** An order of a kit that is not known yet: read all again, but not more often than this. */
const NEW_KIT_MS = 60_000;
const RETRY_MS = 1_000;
const RETRY_MAX_MS = 30_000;

/**
 * Keeps the catalog's entities of orders and kits as the service's list and stream say.
 *
 * A full list at the start, every ten minutes, and when the service says that the stream missed
 * something; else only what changed. While the service is away the catalog keeps what it has. Each
 * replica of the backend follows for itself; what they write is the same.
 */
export class OrderkitEntityProvider implements EntityProvider {
  private connection: EntityProviderConnection | undefined;
  private kits = new Map<string, JsonObject>();
  /** What was written last, so that only differences are written. */
  private readonly known = new Map<string, string>();
  private position = '';
  private loadedAtMs = 0;
  private readonly stopping = new AbortController();
  private running: Promise<void> = Promise.resolve();

  constructor(
    private readonly reader: OrderkitReader,
    private readonly options: EntityOptions,
    private readonly logger: LoggerService,
  ) {}

  getProviderName(): string {
    return 'OrderkitEntityProvider';
  }

  async connect(connection: EntityProviderConnection): Promise<void> {
    this.connection = connection;
    this.running = this.follow(this.stopping.signal);
  }

  /** Stop following. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  private async follow(signal: AbortSignal): Promise<void> {
    let waitMs = RETRY_MS;
    while (!signal.aborted) {
      try {
        if (this.isStale()) {
          await this.load(signal);
        }
        for await (const events of this.reader.changes(this.position, signal)) {
          await this.apply(events);
          waitMs = RETRY_MS;
          if (this.isStale()) {
            break;
          }
        }
        if (!this.isStale()) {
          await sleep(RETRY_MS, signal); // the stream ended, as it does from time to time
        }
      } catch (error) {
        if (signal.aborted) {
          return;
        }
        this.logger.warn(`orders are not up to date, tried again in ${waitMs / 1000} s: ${why(error)}`);
        await sleep(waitMs, signal);
        waitMs = Math.min(2 * waitMs, RETRY_MAX_MS);
      }
    }
  }

  private isStale(): boolean {
    return !this.position || Date.now() - this.loadedAtMs > RELOAD_MS;
  }

  /** Replace everything by what the service lists now. */
  private async load(signal: AbortSignal): Promise<void> {
    const kits = await this.reader.kits(signal);
    const { rows, position } = await this.reader.orders(signal);
    this.kits = new Map(kits.map(kit => [text(kit.name), kit]));
    const entities = new Map<string, Entity>();
    const add = async (make: () => Entity) => {
      const entity = await this.made(make);
      if (entity) {
        entities.set(stringifyEntityRef(entity), entity);
      }
    };
    if (this.options.system) {
      await add(() => systemEntity(this.options));
    }
    for (const kit of kits) {
      await add(() => kitEntity(kit, this.options));
    }
    for (const row of rows) {
      await add(() => this.entityOf(row));
    }
    await this.connection!.applyMutation({ type: 'full', entities: [...entities.values()].map(deferred) });
    this.known.clear();
    entities.forEach((entity, ref) => this.known.set(ref, JSON.stringify(entity)));
    this.position = position;
    this.loadedAtMs = Date.now();
    this.logger.info(`${rows.length} orders and ${kits.length} kits of Orderkit are in the catalog`);
  }

  /** Write what changed. Afterwards the position is that of the last event; empty: load again. */
  private async apply(events: ServerSentEvent[]): Promise<void> {
    const added = new Map<string, Entity>();
    const removed = new Set<string>();
    let position = this.position;
    this.position = ''; // if an event cannot be read or written, everything is loaded again
    for (const event of events) {
      position = event.type === 'reload' ? '' : event.id || position;
      if (event.type === 'reload') {
        break;
      }
      const data = event.data ? object(JSON.parse(event.data)) ?? {} : {};
      if (event.type === 'order') {
        const isNewKit = !this.kits.has(text(data.kit));
        if (isNewKit && Date.now() - this.loadedAtMs > NEW_KIT_MS) {
          position = '';
          break;
        }
        const entity = await this.made(() => this.entityOf(data));
        const ref = entity ? stringifyEntityRef(entity) : '';
        if (entity && this.known.get(ref) !== JSON.stringify(entity)) {
          added.set(ref, entity);
        }
        removed.delete(ref);
      } else if (event.type === 'gone') {
        const ref = this.refOf(data);
        added.delete(ref);
        if (this.known.has(ref)) {
          removed.add(ref);
        }
      }
    }
    if (added.size || removed.size) {
      await this.connection!.applyMutation({
        type: 'delta',
        added: [...added.values()].map(deferred),
        removed: [...removed].map(entityRef => ({ entityRef, locationKey: LOCATION_KEY })),
      });
      added.forEach((entity, ref) => this.known.set(ref, JSON.stringify(entity)));
      removed.forEach(ref => this.known.delete(ref));
    }
    this.position = position;
  }

  private entityOf(row: JsonObject): Entity {
    return orderEntity(row, this.kits.get(text(row.kit)), this.options);
  }

  private refOf(row: JsonObject): string {
    try {
      return orderRef(row.order);
    } catch {
      return '';
    }
  }

  /** Return an entity; undefined if it is not valid, which is logged and stops no other. */
  private async made(make: () => Entity): Promise<Entity | undefined> {
    try {
      return await checked(make());
    } catch (error) {
      this.logger.warn(`an entity of Orderkit is left out: ${why(error)}`);
      return undefined;
    }
  }
}

function deferred(entity: Entity) {
  return { entity, locationKey: LOCATION_KEY };
}

function why(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message}` : '';
  return `${error instanceof Error ? error.message : error}${cause}`.slice(0, 500);
}

async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await setTimeout(ms, undefined, { signal }).catch(() => undefined); // stopped
}
