// One person orders the stage kit in a real browser: sign in, choose the kit, mistype the team,
// mend it, review, create, follow the link to the repository. Prints what was seen as JSON.
//
// Run in the folder that has puppeteer-core; reads {portal, team, template, screenshots, chromium,
// profile} from standard input. Started by test_browser_journey.py.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const resolve = createRequire(join(process.cwd(), 'journey.mjs')).resolve;
const { default: puppeteer } = await import(pathToFileURL(resolve('puppeteer-core')));
const wanted = JSON.parse(readFileSync(0, 'utf8'));
const seen = { messages: [], foreign: [], problems: [], timings: {} };
const began = performance.now();

const browser = await puppeteer.launch({
  executablePath: wanted.chromium,
  userDataDir: wanted.profile,
  defaultViewport: { width: 1280, height: 900 },
  args: [
    '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-dev-shm-usage',
    '--disable-background-networking', '--disable-component-update', '--disable-sync',
  ],
});
const page = await browser.newPage();
page.setDefaultTimeout(60_000);
page.on('console', message => {
  if (message.type() === 'error') seen.problems.push(message.text());
});
page.on('pageerror', error => seen.problems.push(String(error)));
page.on('request', request => {
  const { protocol, hostname } = new URL(request.url());
  if (protocol.startsWith('http') && hostname !== '127.0.0.1') seen.foreign.push(request.url());
});

let shots = 0;
async function shoot(name) {
  shots += 1;
  await page.mouse.move(1000, 880);   // away from the sidebar, which opens below the pointer
  await new Promise(done => setTimeout(done, 400));
  const path = join(wanted.screenshots, `${String(shots).padStart(2, '0')}-${name}.png`);
  await page.screenshot({ path, fullPage: true });
  seen.timings[name] = Math.round(performance.now() - began);
}

const click = text => page.locator(`::-p-xpath(//button[normalize-space(.)='${text}'])`).click();
const text = async () => page.evaluate(() => document.body.innerText);
const shows = (words, timeout = 60_000) => page.waitForFunction(
  each => document.body.innerText.toLowerCase().includes(each), { timeout }, words.toLowerCase());

async function type(field, value) {
  await page.locator(`#root_${field}`).click({ count: 3 });
  await page.keyboard.press('Backspace');
  await page.type(`#root_${field}`, value);
}

try {
  await page.goto(`${wanted.portal}/create`);
  await shows('Guest');
  await shoot('sign-in');
  await click('Enter');
  await shows('Stage Kit');
  await shoot('kits');

  await page.locator(
    `::-p-xpath((//*[text()='Stage Kit']/following::button[normalize-space(.)='Choose'])[1])`).click();
  await page.waitForSelector('#root_team_name');
  await shoot('form');
  await click('Review');
  await new Promise(done => setTimeout(done, 500));
  await shoot('empty-form');
  seen.messages.push(await text());
  await type('team_name', 'No Good!');
  await page.click('#root_stage');
  await page.locator(`::-p-xpath(//li[normalize-space(.)='Stage 2'])`).click();
  await page.waitForSelector('[role=listbox]', { hidden: true });   // it would take the next click
  await click('Review');
  await shows('must have 3 to 29 characters');
  seen.messages.push(await text());
  await shoot('bad-name');

  await type('team_name', wanted.team);
  await click('Review');
  await page.waitForSelector(`::-p-xpath(//button[normalize-space(.)='Create'])`);
  await shoot('review');
  seen.review = await text();
  await click('Create');
  await shows('Open in the catalog');
  await shoot('task');
  seen.task = await text();
  seen.address = page.url();

  const link = await page.waitForSelector(`::-p-xpath(//a[contains(., 'Repository')])`);
  seen.repository = await link.evaluate(found => found.href);
  await page.goto(seen.repository);
  await shoot('repository');
  seen.page = await text();
  for (let attempt = 0; attempt < 20; attempt += 1) {   // the catalog takes a moment
    await page.goto(`${wanted.portal}/catalog/default/component/garage-${wanted.team}`);
    if (await shows(`Stage Kit of team ${wanted.team}`, 3_000).then(() => true, () => false)) break;
  }
  await shoot('catalog');
  seen.catalog = await text();
} catch (error) {
  seen.failure = String(error.stack);
  await shoot('failure').catch(() => {});
} finally {
  await browser.close();
}
process.stdout.write(JSON.stringify(seen));
