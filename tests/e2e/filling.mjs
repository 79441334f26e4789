// One person fills in a generated form in a real browser: a text with a rule, a team and a system picked from
// the catalog, a switch that brings up a question, a choice, a number, a list. Prints what was seen as JSON.
//
// Run in the folder that has puppeteer-core; reads {portal, template, screenshots, chromium, profile, system,
// team} from standard input. Started by test_browser_generated.py.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const resolve = createRequire(join(process.cwd(), 'filling.mjs')).resolve;
const { default: puppeteer } = await import(pathToFileURL(resolve('puppeteer-core')));
const wanted = JSON.parse(readFileSync(0, 'utf8'));
const seen = { messages: [], pages: [], problems: [] };

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
page.on('pageerror', error => seen.problems.push(String(error)));

let shots = 0;
async function shoot(name) {
  shots += 1;
  await page.mouse.move(1000, 880);   // away from the sidebar, which opens below the pointer
  await new Promise(done => setTimeout(done, 400));
  const path = join(wanted.screenshots, `filling-${String(shots).padStart(2, '0')}-${name}.png`);
  await page.screenshot({ path, fullPage: true });
}

const click = text => page.locator(`::-p-xpath(//button[normalize-space(.)='${text}'])`).click();
const text = async () => page.evaluate(() => document.body.innerText);
const shows = (words, timeout = 60_000) => page.waitForFunction(
  each => document.body.innerText.toLowerCase().includes(each), { timeout }, words.toLowerCase());
const there = async field => (await page.$(`#root_${field}`)) !== null;

async function type(field, value) {
  await page.locator(`#root_${field}`).click({ count: 3 });
  await page.keyboard.press('Backspace');
  await page.type(`#root_${field}`, value);
}

// Pick from the catalog: the picker's list opens below its field, and narrows to what is typed.
async function pick(title, words) {
  const field = `::-p-xpath(//label[starts-with(normalize-space(.), '${title}')]/..//input)`;
  await page.locator(field).click();
  await (await page.waitForSelector(field)).type(words);
  await page.locator(`::-p-xpath(//li[@role='option' and contains(., '${words}')])`).click();
}

async function choose(field, label) {
  await page.click(`#root_${field}`);
  await page.locator(`::-p-xpath(//li[normalize-space(.)='${label}'])`).click();
  await page.waitForSelector('[role=listbox]', { hidden: true });   // it would take the next click
}

try {
  await page.goto(`${wanted.portal}/create/templates/default/${wanted.template}`);
  await shows('Guest');
  await click('Enter');
  await page.waitForSelector('#root_name');
  await shoot('first-page');
  seen.pages.push(await text());
  await type('name', 'No Good!');
  await pick('Team', wanted.team);
  await pick('Component', wanted.system);
  await click('Next');
  await shows('must begin with a letter');
  seen.messages.push(await text());
  await shoot('bad-name');
  await type('name', 'churn-model');
  await click('Next');

  await page.waitForSelector('#root_accelerator');
  seen.pages.push(await text());
  seen.before = await there('acceleratorModel');
  await shoot('second-page');
  await page.click('#root_accelerator');
  await page.waitForSelector('#root_acceleratorModel');
  seen.after = await there('acceleratorModel');
  await choose('acceleratorModel', 'L4 (24 GB)');
  await type('diskGib', '25');
  for (const [index, name] of ['polars', 'scikit-learn'].entries()) {
    await page.locator(`::-p-xpath((//button[normalize-space(.)='Back']/preceding::button)[last()])`).click();
    await page.waitForSelector(`#root_packages_${index}`);
    await page.type(`#root_packages_${index}`, name);
  }
  await shoot('filled');
  await click('Review');
  await page.waitForSelector(`::-p-xpath(//button[normalize-space(.)='Create'])`);
  await shoot('review');
  seen.review = await text();
  await click('Create');
  await shows('Open in the catalog');
  await shoot('task');
  seen.task = await text();
} catch (error) {
  seen.failure = String(error.stack);
  seen.shown = await text().catch(() => '');
  await shoot('failure').catch(() => {});
} finally {
  await browser.close();
}
process.stdout.write(JSON.stringify(seen));
