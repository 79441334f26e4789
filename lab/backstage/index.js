// A Backstage backend of release line 1.57 with what Orderkit's templates need of it:
// catalog, scaffolder, Gitea, proxy, notifications, HTTP requests, guests. Started by lab/realbackstage.py.
'use strict';

const { createBackend } = require('@backstage/backend-defaults');

const plugins = [
  '@backstage/plugin-auth-backend',
  '@backstage/plugin-auth-backend-module-guest-provider',
  '@backstage/plugin-catalog-backend',
  '@backstage/plugin-catalog-backend-module-scaffolder-entity-model',
  '@backstage/plugin-notifications-backend',
  '@backstage/plugin-proxy-backend',
  '@backstage/plugin-scaffolder-backend',
  '@backstage/plugin-scaffolder-backend-module-gitea',
  '@roadiehq/scaffolder-backend-module-http-request',
  './actions/cnoe.js',
];
if (process.env.ORDERKIT_FRONT_END === 'true') {
  plugins.push('@backstage/plugin-app-backend');
}

// Orderkit's own packages, if they are unpacked into node_modules.
plugins.push(...(process.env.ORDERKIT_PACKAGES ?? '').split(' ').filter(Boolean));

const backend = createBackend();
for (const name of plugins) {
  const found = require(name);
  backend.add(found.default ?? found);
}
backend.start();
