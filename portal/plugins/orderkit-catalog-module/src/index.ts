/**
 * Orders and kits of an Orderkit platform as entities of the catalog.
 *
 * @packageDocumentation
 */
export { orderkitCatalogModule as default } from './module';
