// A person at a browser, for the journeys beside this file: what they press, type and pick, what they are
// shown, and a picture of each page. A journey is `await visit('name', async person => {...})`; what it
// notes in `seen` is printed as JSON at the end, with the reason if it broke off.
//
// Runs in the folder that has puppeteer-core; reads what `tests/support/browsing.py` writes to standard input.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const resolve = createRequire(join(process.cwd(), 'browser.mjs')).resolve;
const { default: puppeteer } = await import(pathToFileURL(resolve('puppeteer-core')));

export const wanted = JSON.parse(readFileSync(0, 'utf8'));
export const seen = { messages: [], foreign: [], problems: [], timings: {} };

const VIEW = { width: 1280, height: 900 };
const WAIT_MS = 180_000;
const FLAGS = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-dev-shm-usage',
  '--disable-background-networking', '--disable-component-update', '--disable-sync',
];
const began = performance.now();
export const pause = ms => new Promise(done => setTimeout(done, ms));

class Person {
  shots = 0;

  constructor(name, page) {
    this.name = name;
    this.sit(page);
  }

  // Go on at a page that was opened.
  sit(page) {
    this.page = page;
    page.setDefaultTimeout(WAIT_MS);
    page.on('pageerror', error => seen.problems.push(String(error)));
    page.on('console', message => {
      if (message.type() === 'error') seen.problems.push(message.text());
    });
    page.on('request', request => {
      const { protocol, hostname } = new URL(request.url());
      if (protocol.startsWith('http') && hostname !== '127.0.0.1') seen.foreign.push(request.url());
    });
    return page.setViewport(VIEW);
  }

  async shoot(what) {
    this.shots += 1;
    await this.page.mouse.move(1000, 880);   // away from the sidebar, which opens below the pointer
    await pause(400);
    const file = `${this.name}-${String(this.shots).padStart(2, '0')}-${what}.png`;
    await this.page.screenshot({ path: join(wanted.screenshots, file), fullPage: true });
    seen.timings[what] = Math.round(performance.now() - began);
  }

  goto = path => this.page.goto(path.startsWith('http') ? path : `${wanted.portal}${path}`);
  text = () => this.page.evaluate(() => document.body.innerText);

  // Wait for words; give the text in which they stood. A log that is scrolled on does not show them any more.
  async shows(words, timeout = WAIT_MS) {
    const found = await this.page.waitForFunction(each => {
      const text = document.body.innerText;
      return text.toLowerCase().includes(each) && text;
    }, { timeout }, words.toLowerCase());
    return found.jsonValue();
  }

  // Like `shows`, but says whether it came.
  comes = (words, timeout) => this.shows(words, timeout).then(() => true, () => false);
  field = id => this.page.waitForSelector(`#root_${id}`);
  has = async id => (await this.page.$(`#root_${id}`)) !== null;
  value = id => this.page.$eval(`#root_${id}`, found => found.value);
  button = words => this.page.locator(`::-p-xpath(//button[normalize-space(.)='${words}'])`);
  press = words => this.button(words).click();

  // Open the portal and enter as a guest, which it asks once.
  async enter(path) {
    await this.goto(path);
    await this.shows('Guest');
    await this.press('Enter');
  }

  // Type into a field, and again if the form was drawn anew meanwhile and lost some of it.
  async type(id, entered) {
    for (let attempt = 0; attempt < 5; attempt += 1) {
      await this.page.locator(`#root_${id}`).click({ count: 3 });
      await this.page.keyboard.press('Backspace');
      await this.page.keyboard.type(entered);
      if (await this.value(id) === entered) return;
    }
    throw new Error(`'${entered}' was typed into ${id}, which shows '${await this.value(id)}'`);
  }

  // Open a list; a click while the page is drawn anew is lost.
  async unfold(selector) {
    for (let attempt = 0; attempt < 5; attempt += 1) {
      await this.page.locator(selector).click();
      const list = this.page.waitForSelector('[role=listbox]', { timeout: 10_000 });
      if (await list.then(() => true, () => false)) return;
    }
    throw new Error(`${selector} opens no list`);
  }

  // Choose from a list by the label of an entry.
  async choose(id, label) {
    await this.unfold(`#root_${id}`);
    await this.page.locator(`::-p-xpath(//li[normalize-space(.)='${label}'])`).click();
    await this.page.waitForSelector('[role=listbox]', { hidden: true });   // it would take the next click
  }

  // What a list offers.
  async offers(selector) {
    await this.unfold(selector);
    return this.page.$$eval('[role=option]', found => found.map(each => each.innerText));
  }

  picker = title => `::-p-xpath(//label[starts-with(normalize-space(.), '${title}')]/..//input)`;

  // Pick from the catalog: the picker's list opens below its field, and narrows to what is typed.
  async pick(title, words) {
    await this.fill(title, words);
    await this.page.locator(`::-p-xpath(//li[@role='option' and contains(., '${words}')])`).click();
  }

  // Type into a field of the catalog's what it need not offer.
  async fill(title, words) {
    const field = this.picker(title);
    await this.page.locator(field).click({ count: 3 });
    await this.page.keyboard.press('Backspace');
    await (await this.page.waitForSelector(field)).type(words);
  }

  // What a picker of the catalog offers at the moment.
  async picks(title) {
    await this.page.locator(this.picker(title)).click();
    const options = this.page.waitForSelector('[role=option]', { timeout: 10_000 });
    await options.catch(() => {});   // it offers nothing
    await pause(300);
    const found = await this.page.$$eval('[role=option]', each => each.map(one => one.innerText));
    await this.page.keyboard.press('Escape');
    return found;
  }

  // Review a filled form, press its last button, and wait for words of the task; give what both pages showed.
  async create(words) {
    const last = `::-p-xpath(//button[contains('|Order|Change|Extend|End|Create|', concat('|', normalize-space(.), '|'))])`;
    let button;
    for (let attempt = 0; !button && attempt < 6; attempt += 1) {
      // Where a message above it disappears, the button moves away from under the pointer.
      await this.button('Review').setTimeout(10_000).click().catch(() => {});
      button = await this.page.waitForSelector(last, { timeout: 30_000 }).catch(() => null);
    }
    if (!button) throw new Error('the review has no last button');
    await this.shoot(`review-${words.split(' ')[0].toLowerCase().replace(/\W/g, '')}`);
    const review = await this.text();
    const label = await button.evaluate(found => found.textContent.trim());
    await this.page.locator(last).click();
    return { review, button: label, task: await this.shows(words) };
  }

  // Open an order's page, which the catalog has a moment later.
  async open(order, words = 'End the') {
    for (let attempt = 0; attempt < 15; attempt += 1) {
      await this.goto(`/catalog/default/component/${order}`);
      if (await this.comes(words, 3_000 + 1_000 * attempt)) return;   // a busy portal draws slowly
    }
    throw new Error(`the page of ${order} does not show '${words}'`);
  }

  // Follow a link of an order's page to a form, in a page of its own, as a click does.
  async follow(order, title, field = 'order_id') {
    await this.goto(`/catalog/default/component/${order}`);
    const link = this.page.locator(`::-p-xpath(//a[contains(., '${title}')])`).setTimeout(20_000);
    const opened = new Promise(done => this.page.once('popup', done));
    let form;
    for (let attempt = 0; !form && attempt < 8; attempt += 1) {
      await link.click().catch(() => {});   // what is drawn anew at this moment cannot be clicked, or loses it
      form = await Promise.race([opened, pause(15_000)]);
    }
    if (!form) throw new Error(`'${title}' at ${order} opens no page`);
    await this.page.close();
    await this.sit(form);
    await this.field(field);
  }
}

export async function visit(name, journey) {
  const browser = await puppeteer.launch({
    executablePath: wanted.chromium, userDataDir: wanted.profile, defaultViewport: VIEW, args: FLAGS,
  });
  const person = new Person(name, await browser.newPage());
  // A browser that is killed from outside leaves its processes behind.
  const late = pause(wanted.limitS * 1000).then(() => { throw new Error(`not over after ${wanted.limitS} s`); });
  late.catch(() => {});
  try {
    await Promise.race([journey(person), late]);
  } catch (error) {
    seen.failure = String(error.stack);
    seen.shown = await person.text().catch(() => '');
    await person.shoot('failure').catch(() => {});
  } finally {
    await browser.close();
  }
  process.stdout.write(JSON.stringify(seen), () => process.exit());   // whatever the journey still waits for
}
