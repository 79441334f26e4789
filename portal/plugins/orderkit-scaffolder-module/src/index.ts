/**
 * Scaffolder actions of an Orderkit platform.
 *
 * @packageDocumentation
 */
export { orderkitScaffolderModule as default } from './module';
