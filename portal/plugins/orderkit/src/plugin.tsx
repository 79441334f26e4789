import { createFrontendPlugin } from '@backstage/frontend-plugin-api';

/** Shows orders of an Orderkit platform on the pages of their entities. */
export default createFrontendPlugin({
  pluginId: 'orderkit',
  extensions: [],
});
