import { coreServices, createBackendModule } from '@backstage/backend-plugin-api';
import { catalogProcessingExtensionPoint } from '@backstage/plugin-catalog-node';
import { OrderkitEntityProvider } from './OrderkitEntityProvider';
import { OrderkitReader } from './OrderkitReader';

/** Adds the orders and kits of an Orderkit platform to the catalog. */
export const orderkitCatalogModule = createBackendModule({
  pluginId: 'catalog',
  moduleId: 'orderkit',
  register({ registerInit }) {
    registerInit({
      deps: {
        catalog: catalogProcessingExtensionPoint,
        config: coreServices.rootConfig,
        lifecycle: coreServices.lifecycle,
        logger: coreServices.logger,
      },
      async init({ catalog, config, lifecycle, logger }) {
        const url = config.getOptionalString('orderkit.url')?.replace(/\/+$/, '');
        const token = config.getOptionalString('orderkit.catalog.token');
        if (!url || !token) {
          const missing = url ? 'orderkit.catalog.token' : 'orderkit.url';
          logger.warn(`the catalog shows no orders of Orderkit, because ${missing} is not configured`);
          return;
        }
        const provider = new OrderkitEntityProvider(
          new OrderkitReader(url, token.trim()),
          {
            publicUrl: config.getOptionalString('orderkit.publicUrl')?.replace(/\/+$/, '') ?? url,
            formLinks: config.getOptionalBoolean('orderkit.catalog.formLinks') ?? true,
            system: config.getOptionalString('orderkit.catalog.system') ?? 'orderkit',
            systemOwner:
              config.getOptionalString('orderkit.catalog.owner') ?? 'group:default/platform',
          },
          logger,
        );
        catalog.addEntityProvider(provider);
        lifecycle.addShutdownHook(() => provider.stop());
      },
    });
  },
});
