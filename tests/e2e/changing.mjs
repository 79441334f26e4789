// One person changes an order and ends it, in a real browser, beginning at the order's page: a link
// opens the form with today's value; a change that is refused, one that is committed, one that is
// reviewed, the end with the order's id typed. Prints what was seen as JSON.
//
// Run in the folder that has puppeteer-core; reads {portal, order, ending, screenshots, chromium, profile}
// from standard input. Started by test_browser_changes.py.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const resolve = createRequire(join(process.cwd(), 'changing.mjs')).resolve;
const { default: puppeteer } = await import(pathToFileURL(resolve('puppeteer-core')));
const wanted = JSON.parse(readFileSync(0, 'utf8'));
const seen = { foreign: [], problems: [] };

const browser = await puppeteer.launch({
  executablePath: wanted.chromium,
  userDataDir: wanted.profile,
  defaultViewport: { width: 1280, height: 900 },
  args: [
    '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-dev-shm-usage',
    '--disable-background-networking', '--disable-component-update', '--disable-sync',
  ],
});
let page;

async function watched(found) {
  found.setDefaultTimeout(60_000);
  await found.setViewport({ width: 1280, height: 900 });
  found.on('pageerror', error => seen.problems.push(String(error)));
  found.on('request', request => {
    const { protocol, hostname } = new URL(request.url());
    if (protocol.startsWith('http') && hostname !== '127.0.0.1') seen.foreign.push(request.url());
  });
  return found;
}

let shots = 0;
async function shoot(name) {
  shots += 1;
  await page.mouse.move(1000, 880);   // away from the sidebar, which opens below the pointer
  await new Promise(done => setTimeout(done, 400));
  const path = join(wanted.screenshots, `change-${String(shots).padStart(2, '0')}-${name}.png`);
  await page.screenshot({ path, fullPage: true });
}

const click = text => page.locator(`::-p-xpath(//button[normalize-space(.)='${text}'])`).click();
const text = async () => page.evaluate(() => document.body.innerText);
const shows = (words, timeout = 60_000) => page.waitForFunction(
  each => document.body.innerText.toLowerCase().includes(each), { timeout }, words.toLowerCase());
const value = field => page.$eval(`#root_${field}`, found => found.value);

async function type(field, entered) {
  await page.locator(`#root_${field}`).click({ count: 3 });
  await page.keyboard.press('Backspace');
  await page.type(`#root_${field}`, entered);
}

const entity = order => `${wanted.portal}/catalog/default/component/${order}`;

async function open(order) {
  for (let attempt = 0; attempt < 30; attempt += 1) {   // the catalog takes a moment
    await page.goto(entity(order));
    if (await shows('End the', 3_000).then(() => true, () => false)) break;
  }
}

// Opens a link of an order's page in a page of its own, as a click does.
async function follow(title, order = wanted.order) {
  await page.goto(entity(order));
  const link = await page.waitForSelector(`::-p-xpath(//a[contains(., '${title}')])`);
  const opened = new Promise(done => page.once('popup', done));
  await link.click();
  const form = await Promise.race([opened, new Promise(done => setTimeout(done, 5_000, null))]);
  if (form) {
    await page.close();
    page = await watched(form);
  }
  await page.waitForSelector('#root_order_id');
}

async function create(words) {
  await click('Review');
  await page.waitForSelector(`::-p-xpath(//button[normalize-space(.)='Create'])`);
  await shoot(`review-${words.split(' ')[0].toLowerCase()}`);
  await click('Create');
  await shows(words);
}

try {
  page = await watched(await browser.newPage());
  await page.goto(`${wanted.portal}/create`);
  await shows('Guest');
  await click('Enter');
  await shows('Create');
  await open(wanted.order);
  await shoot('order');
  seen.order = await text();

  await follow('Change budget');
  await page.waitForSelector('#root_budget');
  seen.budget = await value('budget');
  seen.shownOrder = await value('order_id');
  await shoot('form');
  await type('budget', '3');
  await create('403');
  seen.refused = await text();
  await shoot('refused');

  await follow('Change budget');
  await page.waitForSelector('#root_budget');
  await type('budget', '9');
  await type('change_reason', 'two more races');
  await create('Committed as');
  seen.committed = await text();
  await shoot('committed');

  await follow('Change level');
  await page.waitForSelector('#root_level');
  await page.click('#root_level');
  await page.waitForSelector('[role=listbox]');
  seen.levels = await page.$$eval('[role=option]', found => found.map(each => each.innerText));
  await shoot('next-levels');

  await follow('Change paint');
  await page.waitForSelector('#root_motto');
  await type('motto', 'fast');
  await create('waits for review');
  seen.proposed = await text();
  await shoot('proposed');

  await open(wanted.ending);
  await follow('End the', wanted.ending);
  await page.waitForSelector('#root_confirm');
  seen.end = await text();
  await type('confirm', 'garage-other');
  await create('400');
  seen.unconfirmed = await text();
  await shoot('unconfirmed');

  await follow('End the', wanted.ending);
  await page.waitForSelector('#root_confirm');
  await type('confirm', wanted.ending);
  await create('has ended');
  seen.ended = await text();
  await shoot('ended');
} catch (error) {
  seen.failure = String(error.stack);
  seen.text = await text().catch(() => '');
  await shoot('failure').catch(() => {});
} finally {
  await browser.close();
}
process.stdout.write(JSON.stringify(seen));
