// Renders templates and judges forms with what Backstage does it with.
// One JSON request per line of standard input, one JSON answer per line of standard output.
// Started as `node serve.js FOLDER`, where FOLDER holds node_modules.

import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { resolve } from 'node:path';
import { engines } from './rendering.js';
import { judges } from './judging.js';

Error.stackTraceLimit = 0; // nobody reads them, and templates fail often
const load = createRequire(resolve(process.argv[2], 'package.json'));
const render = engines(load);
const judge = judges(load);
const { resolveParameterSteps } = load('@backstage/plugin-scaffolder-common/alpha');

const answers = {
  // {contexts: [context...], jobs: [[template, index of context]...], ...options} -> [[nunjitsu, nunjucks]...]
  render: ({ contexts, jobs, options }) => render.texts(contexts, jobs, options ?? {}),
  // {contexts, jobs} -> [{value}...] as steps see it
  values: ({ contexts, jobs }) => render.values(contexts, jobs),
  // {jobs: [[schema, value]...]} -> [{jsonschema, ajv}...]
  judge: ({ jobs }) => jobs.map(([schema, value]) => judge(schema, value)),
  // {jobs: [[pages, values]...]} -> [{visible, values}...]: which pages form and backend show, what they keep
  pages: ({ jobs }) => jobs.map(([pages, values]) => shownPages(pages, values)),
  // {numbers: [texts of doubles], texts: [...]} -> String() and JSON.stringify() of each
  print: ({ numbers, texts }) => ({
    numbers: numbers.map((each) => [String(Number(each)), JSON.stringify(Number(each))]),
    texts: texts.map((each) => JSON.stringify(each)),
  }),
  // {texts: [...]} -> Number() of each, as text
  read: ({ texts }) => texts.map((each) => String(Number(each))),
  // {jobs: [[pattern, text]...]} -> with and without the flag u: true, false, or null if it is not a pattern
  match: ({ jobs }) => jobs.map(([pattern, text]) => ['u', ''].map((flag) => match(pattern, flag, text))),
  versions: ({ packages }) => Object.fromEntries(packages.map((name) => [name, version(name)])),
};

function shownPages(pages, values) {
  return resolveParameterSteps(values, pages.map((schema) => ({ schema, when: schema.when })));
}

function match(pattern, flag, text) {
  try {
    return new RegExp(pattern, flag).test(text);
  } catch {
    return null;
  }
}

function version(name) {
  return name === 'node' ? process.versions.node : load(`./node_modules/${name}/package.json`).version;
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  process.stdout.write(`${JSON.stringify(answers[request.do](request))}\n`);
}
