// Stand-ins for the CNOE actions, which are not on npm: ids and inputs as theirs.
//
// `cnoe:utils:sanitize` does what its name says. The other two apply to the cluster of the
// configuration (`orderkit.cluster`) by server-side apply. Not here: other clusters than that
// one, kinds whose plural is not the kind with an s, Argo CD's own API, `cnoe:verify:dependency`.
'use strict';

const fs = require('node:fs/promises');
const https = require('node:https');
const { createBackendModule, coreServices, resolveSafeChildPath } = require('@backstage/backend-plugin-api');
const { createTemplateAction, scaffolderActionsExtensionPoint } = require('@backstage/plugin-scaffolder-node');
const yaml = require('yaml');

/** Apply one manifest; throws with the API server's own words. */
async function apply(config, manifest) {
  const cluster = config.getConfig('orderkit.cluster');
  const { apiVersion, kind, metadata } = manifest;
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const folder = metadata.namespace ? `/namespaces/${encodeURIComponent(metadata.namespace)}` : '';
  const name = encodeURIComponent(metadata.name);
  const url = `${cluster.getString('url')}${root}${folder}/${kind.toLowerCase()}s/${name}?fieldManager=backstage&force=true`;
  const answer = await patch(url, JSON.stringify(manifest), {
    token: cluster.getString('token'),
    ca: await fs.readFile(cluster.getString('caFile')),
  });
  if (answer.status >= 300) {
    throw new Error(`${kind} ${metadata.name}: the cluster answered ${answer.status}: ${answer.body.slice(0, 500)}`);
  }
}

function patch(url, body, { token, ca }) {
  const headers = {
    Authorization: `Bearer ${token}`,
    'Content-Type': 'application/apply-patch+yaml',
    'Content-Length': Buffer.byteLength(body),
  };
  return new Promise((resolve, reject) => {
    const request = https.request(url, { method: 'PATCH', headers, ca, timeout: 30_000 }, response => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', chunk => { text += chunk; });
      response.on('end', () => resolve({ status: response.statusCode, body: text }));
    });
    request.on('timeout', () => request.destroy(new Error('the cluster did not answer within 30 s')));
    request.on('error', reject);
    request.end(body);
  });
}

function kubernetesApply(config) {
  return createTemplateAction({
    id: 'cnoe:kubernetes:apply',
    description: 'Apply a manifest to a cluster',
    schema: {
      input: {
        namespaced: z => z.boolean({ description: 'Whether the kind is namespaced' }),
        manifestString: z => z.string({ description: 'The manifest as text' }).optional(),
        manifestObject: z => z.record(z.any(), { description: 'The manifest as an object' }).optional(),
        manifestPath: z => z.string({ description: 'Path of the manifest in the workspace' }).optional(),
        clusterName: z => z.string({ description: 'A cluster of the configuration' }).optional(),
      },
    },
    async handler(ctx) {
      const { manifestString, manifestObject, manifestPath } = ctx.input;
      let manifest = manifestObject;
      if (manifestPath) {
        manifest = yaml.parse(await fs.readFile(resolveSafeChildPath(ctx.workspacePath, manifestPath), 'utf8'));
      } else if (manifestString) {
        manifest = yaml.parse(manifestString);
      }
      if (!manifest) throw new Error('one of manifestString, manifestObject, manifestPath is needed');
      await apply(config, manifest);
      ctx.logger.info(`applied ${manifest.kind} ${manifest.metadata.name}`);
    },
  });
}

function createArgocdApp(config) {
  return createTemplateAction({
    id: 'cnoe:create-argocd-app',
    description: 'Create an Application of Argo CD',
    schema: {
      input: {
        repoUrl: z => z.string({ description: 'Repository to deliver from' }),
        projectName: z => z.string({ description: 'AppProject' }),
        appName: z => z.string({ description: 'Name of the Application' }),
        argoInstance: z => z.string({ description: 'Argo CD of the configuration' }),
        path: z => z.string({ description: 'Folder in the repository' }),
        appNamespace: z => z.string({ description: 'Namespace of the destination' }),
        labelValue: z => z.string({ description: 'Value of the label backstage-name' }).optional(),
      },
    },
    async handler(ctx) {
      const { repoUrl, projectName, appName, path, appNamespace, labelValue } = ctx.input;
      await apply(config, {
        apiVersion: 'argoproj.io/v1alpha1',
        kind: 'Application',
        metadata: {
          name: appName,
          namespace: 'argocd',
          finalizers: ['resources-finalizer.argocd.argoproj.io'],
          ...(labelValue && { labels: { 'backstage-name': labelValue } }),
        },
        spec: {
          project: projectName,
          source: { repoURL: repoUrl, path },
          destination: { server: 'https://kubernetes.default.svc', namespace: appNamespace },
          syncPolicy: {
            automated: { prune: true, selfHeal: true, allowEmpty: true },
            retry: { limit: 10, backoff: { duration: '5s', factor: 2, maxDuration: '5m' } },
            syncOptions: ['CreateNamespace=false', 'FailOnSharedResource=true', 'ServerSideApply=true'],
          },
        },
      });
      ctx.logger.info(`Application ${appName} in argocd`);
    },
  });
}

function sanitize() {
  return createTemplateAction({
    id: 'cnoe:utils:sanitize',
    description: 'Remove what is empty from a YAML document',
    supportsDryRun: true,
    schema: {
      input: { document: z => z.string({ description: 'The document' }) },
      output: { sanitized: z => z.string({ description: 'The document without empty values' }) },
    },
    async handler(ctx) {
      ctx.output('sanitized', yaml.stringify(withoutEmpty(yaml.parse(ctx.input.document))));
    },
  });
}

/** Drop nulls, empty lists and empty maps, from the inside out; empty texts stay. */
function withoutEmpty(value) {
  if (Array.isArray(value)) return value.map(withoutEmpty).filter(isSomething);
  if (value === null || typeof value !== 'object') return value;
  const kept = Object.entries(value).map(([key, inner]) => [key, withoutEmpty(inner)]);
  return Object.fromEntries(kept.filter(([, inner]) => isSomething(inner)));
}

function isSomething(value) {
  if (value === null || value === undefined) return false;
  return typeof value !== 'object' || Object.keys(value).length > 0;
}

module.exports = createBackendModule({
  pluginId: 'scaffolder',
  moduleId: 'cnoe-stand-ins',
  register({ registerInit }) {
    registerInit({
      deps: { actions: scaffolderActionsExtensionPoint, config: coreServices.rootConfig },
      async init({ actions, config }) {
        actions.addActions(kubernetesApply(config), createArgocdApp(config), sanitize());
      },
    });
  },
});
