// A hand at a browser that a test moves step by step: one JSON object on a line of standard input is one
// step, one on standard output its result. The test's own side is `tests/support/realbrowser.py`.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const resolve = createRequire(join(process.cwd(), 'hand.mjs')).resolve;
const { default: puppeteer } = await import(pathToFileURL(resolve('puppeteer-core')));
const FLAGS = ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-dev-shm-usage', '--disable-background-networking'];

const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const setUp = JSON.parse((await input.next()).value);
const axe = readFileSync(setUp.axe, 'utf8');
const browser = await puppeteer.launch({ executablePath: setUp.chromium, userDataDir: setUp.profile, args: FLAGS });
const seen = { problems: [], foreign: [] };
let page;

const quoted = words => (words.includes("'") ? `"${words}"` : `'${words}'`);
const control = words => page.waitForSelector(
  `::-p-xpath((//button|//a)[normalize-space(.)=${quoted(words)} or starts-with(normalize-space(.), ${quoted(`${words} of `)})])`, { timeout: 15_000 });

// A page without scripts loads itself again now and then: what was read of the page before is read once more.
async function steady(read) {
  for (let tries = 1; ; tries += 1) {
    try { return await read(); } catch (error) {
      if (tries === 5 || !/belong to the document|context was destroyed|detached/i.test(error.message)) throw error;
    }
  }
}

async function field(label) {
  const found = await page.waitForSelector(
    `::-p-xpath(//label[starts-with(normalize-space(.), ${quoted(label)})])`, { timeout: 15_000 });
  return page.$(`[id="${await found.evaluate(node => node.htmlFor)}"]`);
}

const steps = {
  async open({ javascript, width = 1280, dark = false }) {
    await page?.close();
    const context = await browser.createBrowserContext();
    page = await context.newPage();
    page.on('pageerror', error => seen.problems.push(String(error)));
    page.on('console', message => { const isAnswer = /status of 4\d\d/.test(message.text());   // a refusal is a page, too
      if (message.type() === 'error' && !isAnswer) seen.problems.push(message.text());
    });
    page.on('request', request => {
      if (!request.url().startsWith(setUp.url) && request.url().startsWith('http')) seen.foreign.push(request.url());
    });
    await page.setJavaScriptEnabled(javascript);
    await page.setViewport({ width, height: 860 });
    if (dark) await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }]);
  },
  goto: ({ path }) => page.goto(new URL(path, setUp.url).href, { waitUntil: 'domcontentloaded' }).then(() => page.url()),
  text: () => steady(() => page.$eval('body', body => body.innerText)),
  url: () => page.url(),
  async press({ words }) {
    const found = await control(words);
    const inPlace = page.isJavaScriptEnabled() ? 'plan' : null;   // this button's answer comes into the page
    const leads = await found.evaluate((node, stays) => node.tagName === 'A' || (node.tagName === 'BUTTON' && node.value !== stays), inPlace);
    const came = leads ? page.waitForNavigation({ waitUntil: 'domcontentloaded', timeout: 60_000 }) : null;
    await found.click().catch(async error => {
      if (!/detached/.test(error.message)) throw error;
      await (await control(words)).click();   // the page followed an event meanwhile
    });
    await came;
  },
  // Press what leads nowhere else: a page of scripts stays the same page.
  async tap({ words }) {
    await page.locator(`::-p-xpath((//button|//a|//*[@role='tab' or @role='option'])[normalize-space(.)=${quoted(words)}])`)
      .setTimeout(30_000).click();
  },
  // Choose from a list of a portal's, which opens below its button.
  async choose({ label, option }) {
    const name = await page.waitForSelector(`::-p-xpath(//*[normalize-space(text())=${quoted(label)}])`, { timeout: 30_000 });
    const button = await name.evaluateHandle(node => {
      for (let at = node; at; at = at.parentElement) { const found = at.querySelector('button'); if (found) return found; }
      return null;
    });
    await button.click();
    await page.locator(`::-p-xpath(//*[@role='option'][normalize-space(.)=${quoted(option)}])`).setTimeout(30_000).click();
  },
  // How long after the page was asked for something stands there, in milliseconds.
  paintedAfter: async ({ selector }) => {
    await page.waitForSelector(selector, { timeout: 120_000 });
    return page.evaluate(() => Math.round(performance.now()));
  },
  offline: ({ cut }) => page.setOfflineMode(cut),
  size: ({ width }) => page.setViewport({ width, height: 860 }),
  escape: () => page.keyboard.press('Escape'),
  attribute: ({ selector, name }) => page.$eval(selector, (node, of) => node.getAttribute(of), name),
  async fill({ label, value }) {
    const found = await field(label);
    if (await found.evaluate(node => node.tagName === 'SELECT')) { await found.select(value); return; }
    await found.click({ count: 3 });
    await found.press('Backspace');
    await found.type(value);
  },
  mark: () => page.$eval('html', html => { html.dataset.mark = 'kept'; }),
  marked: () => page.$eval('html', html => html.dataset.mark === 'kept'),
  tab: async ({ times }) => { for (let n = 0; n < times; n += 1) await page.keyboard.press('Tab'); return page.evaluate(() => document.activeElement?.innerText ?? ''); },
  enter: () => page.keyboard.press('Enter'),
  async submit() {   // with the field that was filled in last
    const came = page.waitForNavigation({ waitUntil: 'domcontentloaded', timeout: 60_000 });
    await page.keyboard.press('Enter');
    await came;
  },
  wide: () => steady(() => page.$eval('html', html => html.scrollWidth > html.clientWidth)),
  async shoot({ file, full = true }) {
    if (full) await page.evaluate(() => scrollTo(0, 0));
    if (page.viewport().width > 1000) await page.mouse.move(1000, 850);   // a sidebar opens below the pointer
    await page.screenshot({ path: file, fullPage: full });
  },
  async axe({ within }) {
    await page.evaluate(axe);
    const result = await page.evaluate(part => globalThis.axe.run(part ? { include: [[part]] } : document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'] }), within);
    return result.violations.map(({ id, impact, help, nodes }) => ({ id, impact, help, at: nodes.slice(0, 3).map(node => node.html) }));
  },
  seen: () => seen,
};

try {
  for (;;) {
    const { value, done } = await input.next();
    if (done) break;
    const { step, ...given } = JSON.parse(value);
    let answer;
    for (let attempt = 0; !answer; attempt += 1) {
      try {
        answer = { result: await steps[step](given) ?? null };
      } catch (error) {
        const isGone = /context was destroyed|detached|find context|with 0 width/.test(error.message);   // a page came
        if (step === 'press' || !isGone || attempt > 40) answer = { failure: String(error.stack) };
        else await new Promise(done => setTimeout(done, 150));
      }
    }
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  }
} finally {
  await browser.close();
}
