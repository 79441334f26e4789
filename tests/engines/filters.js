// The filters that the scaffolder registers, for the integrations of a gitea and a github host.

const HOSTS = new Map([['gitea.example.com', ['repo']], ['127.0.0.1:7300', ['repo']], ['github.com', ['repo', 'owner']]]);
const PARTS = ['owner', 'organization', 'workspace', 'project', 'repo'];

export function filters(lodash) {
  return {
    parseRepoUrl: repository,
    projectSlug: (url) => {
      const { owner, repo } = repository(url);
      return `${owner}/${repo}`;
    },
    parseEntityRef: entity,
    pick: lodash.get,
  };

  function repository(source) {
    const url = new URL(`https://${source}`);
    const required = HOSTS.get(url.host);
    if (!required) throw new Error(`no integration for ${url.host}`);
    for (const name of required) {
      if (!url.searchParams.get(name)) throw new Error(`${url} has no ${name}`);
    }
    const part = (name) => (url.searchParams.has(name) ? lodash.trim(url.searchParams.get(name), '/') : undefined);
    const { repo, ...others } = Object.fromEntries(PARTS.map((name) => [name, part(name)]));
    return { host: url.host, owner: others.owner, repo, organization: others.organization, workspace: others.workspace, project: others.project };
  }
}

function entity(ref, context) {
  if (!ref) throw new Error('an entity reference must not be empty');
  const found = typeof ref === 'string' ? partsOf(ref) : ref;
  const kind = found.kind ?? context?.defaultKind;
  const namespace = found.namespace ?? (context?.defaultNamespace || 'default');
  if (!kind || !namespace || !found.name) throw new Error(`${JSON.stringify(ref)} misses a part`);
  return { kind, namespace, name: found.name };
}

// kind:namespace/name; a colon behind the slash belongs to the name.
function partsOf(ref) {
  const slash = ref.indexOf('/');
  const anyColon = ref.indexOf(':');
  const colon = slash !== -1 && slash < anyColon ? -1 : anyColon;
  const parts = {
    kind: colon === -1 ? undefined : ref.slice(0, colon),
    namespace: slash === -1 ? undefined : ref.slice(colon + 1, slash),
    name: ref.slice(Math.max(colon, slash) + 1),
  };
  if (Object.values(parts).includes('')) throw new Error(`${ref} has an empty part`);
  return parts;
}
