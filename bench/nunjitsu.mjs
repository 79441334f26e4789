// How long nunjitsu takes for a small repository, in process: the median of many runs, in ms.
// Started as `node nunjitsu.mjs FOLDER RUNS` with {files: [[path, text]...], values} on its standard
// input, where FOLDER holds node_modules.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';

const [folder, runs] = process.argv.slice(2);
const load = createRequire(resolve(folder, 'package.json'));
const { createTemplateRenderer } = load('nunjitsu');
const { files, values } = JSON.parse(readFileSync(0, 'utf8'));
const renderer = createTemplateRenderer();

function tree() {
  const context = renderer.prepareContext({ values });
  return files.map(([path, text]) => [renderer.render(path, context), renderer.render(text, context)]);
}

function once() {
  const begin = process.hrtime.bigint();
  tree();
  return Number(process.hrtime.bigint() - begin) / 1e6;
}

const times = Array.from({ length: Number(runs) }, once).sort((a, b) => a - b);
console.log(JSON.stringify({ median_ms: times[Math.floor(times.length / 2)], files: tree() }));
