// nunjitsu, as scaffolder-backend 4.2.1 and later calls it; nunjucks, as releases before 4.0.3 did.

import { filters } from './filters.js';

const TEXT_MAX = 300;

export function engines(load) {
  const { createTemplateRenderer } = load('nunjitsu');
  const own = filters(load('lodash'));
  const renderers = new Map();

  function renderer({ compat = false, trim = false, lstrip = false }) {
    const key = JSON.stringify([compat, trim, lstrip]);
    if (!renderers.has(key)) {
      const nunjitsu = createTemplateRenderer({
        allowRegexExecution: true, filters: own, cookiecutterCompat: compat, trimBlocks: trim, lstripBlocks: lstrip,
      });
      renderers.set(key, { nunjitsu, nunjucks: oldEnvironment(load, own, { compat, trim, lstrip }) });
    }
    return renderers.get(key);
  }

  return { texts, values };

  // What nunjitsu makes of a step's text: {value}, {} for undefined, or {error}.
  function values(contexts, jobs) {
    const { nunjitsu } = renderer({});
    const prepared = contexts.map((context) => nunjitsu.prepareContext(context));
    return jobs.map(([source, at]) => attempt(() => ({ value: nunjitsu.renderValue(source, prepared[at], { coercion: 'json' }) })));
  }

  function texts(contexts, jobs, options) {
    const json = contexts.map((context) => JSON.stringify(context));
    const { nunjitsu, nunjucks } = renderer(options);
    const prepared = contexts.map((context) => nunjitsu.prepareContext(context));
    return jobs.map(([source, at]) => [
      attempt(() => nunjitsu.render(source, prepared[at])),
      attempt(() => nunjucks.renderString(source, JSON.parse(json[at]))),
    ]);
  }
}

// Text, or {error: message}.
function attempt(run) {
  try {
    return run();
  } catch (error) {
    return { error: String(error.message).slice(0, TEXT_MAX) };
  }
}

// A fresh copy of the module for each, because its Jinja mode changes prototypes for good.
function oldEnvironment(load, own, { compat, trim, lstrip }) {
  for (const path of Object.keys(load.cache)) {
    if (path.includes('/nunjucks/')) delete load.cache[path];
  }
  const nunjucks = load('nunjucks');
  if (compat) nunjucks.installJinjaCompat();
  const environment = new nunjucks.Environment(null, {
    autoescape: false, trimBlocks: trim, lstripBlocks: lstrip,
    tags: { variableStart: compat ? '{{' : '${{', variableEnd: '}}' },
  });
  if (compat) {
    environment.addFilter('jsonify', environment.getFilter('dump'));
    return environment;
  }
  for (const [name, run] of Object.entries(own)) {
    environment.addFilter(name, (...given) => detached(run(...given)));
  }
  return environment;
}

// Filters ran outside the isolate; results crossed its border as JSON.
function detached(value) {
  const text = value === undefined ? undefined : JSON.stringify(value);
  return text === undefined ? undefined : JSON.parse(text);
}
