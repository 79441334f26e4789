import { createBackendModule } from '@backstage/backend-plugin-api';

/** Adds the orders and kits of an Orderkit platform to the catalog. */
export default createBackendModule({
  pluginId: 'catalog',
  moduleId: 'orderkit',
  register(env) {
    env.registerInit({ deps: {}, async init() {} });
  },
});
