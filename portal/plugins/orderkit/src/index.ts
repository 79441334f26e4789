export { default } from './plugin';
