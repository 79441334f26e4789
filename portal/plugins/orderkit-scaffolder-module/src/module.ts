import { coreServices, createBackendModule } from '@backstage/backend-plugin-api';
import { scaffolderActionsExtensionPoint } from '@backstage/plugin-scaffolder-node';
import { createChangeAction } from './actions/change';
import { createEndAction } from './actions/end';
import { createOrderAction } from './actions/order';
import { OrderkitService } from './OrderkitService';

/** Adds `orderkit:order`, `orderkit:change` and `orderkit:end` to the scaffolder. */
export const orderkitScaffolderModule = createBackendModule({
  pluginId: 'scaffolder',
  moduleId: 'orderkit',
  register({ registerInit }) {
    registerInit({
      deps: {
        actions: scaffolderActionsExtensionPoint,
        auth: coreServices.auth,
        config: coreServices.rootConfig,
        discovery: coreServices.discovery,
      },
      async init({ actions, auth, config, discovery }) {
        const endpoint = config.getOptionalString('orderkit.proxyEndpoint') ?? 'orderkit';
        const proxyEndpoint = `/${endpoint.replace(/^\/+|\/+$/g, '')}`;
        const service = new OrderkitService(auth, discovery, proxyEndpoint);
        actions.addActions(
          createOrderAction(service),
          createChangeAction(service),
          createEndAction(service),
        );
      },
    });
  },
});
