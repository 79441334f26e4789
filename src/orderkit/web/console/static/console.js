// The console works without this file. With it, pages follow the stream of the service instead of being
// reloaded, plans appear while one types, and fields that an answer makes pointless are hidden.
'use strict';

const REFRESH_MS = 250;   // changes come in bursts
const SETTLE_MS = 3000;   // once more after the last change: what a page shows is read one after the other
const RUNNING_MS = 1500;  // while checks of a page still run
const POLL_MS = 4000;     // where there is no stream
const PLAN_MS = 700;      // after the last key

// --- live parts: elements with an id and data-live are replaced by those of the page as it is now

const live = {
  light: document.getElementById('live'),
  timer: 0,
  settling: 0,
  waiting: 0,
  busy: false,
  again: false,

  shows(text, state) {
    if (!this.light) return;
    this.light.hidden = false;
    this.light.dataset.state = state;
    if (this.light.textContent !== text) this.light.textContent = text;
  },

  soon() {
    clearTimeout(this.timer);
    clearTimeout(this.settling);
    this.timer = setTimeout(() => this.refresh(), REFRESH_MS);
    this.settling = setTimeout(() => this.refresh(), SETTLE_MS);
  },

  async refresh() {
    if (this.busy) { this.again = true; return; }
    this.busy = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: 'text/html' }, redirect: 'follow' });
      if (answer.redirected) { location.reload(); return; }   // signed out, or it has another place now
      if (answer.ok) replace(await answer.text());
    } catch { /* the server is away for a moment: the stream says when it is back */ }
    finally {
      this.busy = false;
      if (this.again) { this.again = false; this.soon(); }
      this.awaits();
    }
  },
};

// a page says that something of it is still being found out
live.awaits = () => {
  clearTimeout(live.waiting);
  if (document.querySelector('[data-running]')) live.waiting = setTimeout(() => live.refresh(), RUNNING_MS);
};

function replace(text) {
  const page = new DOMParser().parseFromString(text, 'text/html');
  for (const old of document.querySelectorAll('[data-live]')) {
    const fresh = page.getElementById(old.id);
    if (!fresh || fresh.isEqualNode(old) || isInUse(old)) continue;
    keepFolds(old, fresh);
    keepTicks(old, fresh);
    const focused = old.contains(document.activeElement) ? pathOf(document.activeElement, old) : null;
    old.replaceWith(document.importNode(fresh, true));
    if (focused) document.getElementById(old.id).querySelector(focused)?.focus({ preventScroll: true });
  }
  const stream = page.body.dataset.stream ?? '';
  if (stream !== (document.body.dataset.stream ?? '')) location.reload();   // it ended, or began to end
}

// What somebody types into or selects is left alone.
function isInUse(part) {
  const at = document.activeElement;
  const selection = getSelection();
  const types = at && part.contains(at) && at.matches('input:not([type="checkbox"]), select, textarea');
  return types || (selection && !selection.isCollapsed && part.contains(selection.anchorNode));
}

function keepFolds(old, fresh) {
  for (const fold of old.querySelectorAll('details[id]')) {
    const same = fresh.querySelector(`#${CSS.escape(fold.id)}`);
    if (same && fold.dataset.touched) { same.open = fold.open; same.dataset.touched = 'yes'; }
  }
}

function keepTicks(old, fresh) {
  for (const tick of old.querySelectorAll('input[type="checkbox"][id]:checked')) {
    const same = fresh.querySelector(`#${CSS.escape(tick.id)}`);
    if (same) same.setAttribute('checked', '');
  }
}

function pathOf(element, part) {
  if (element.id) return `#${CSS.escape(element.id)}`;
  const href = element.getAttribute('href');
  const twins = href ? part.querySelectorAll(`a[href="${CSS.escape(href)}"]`) : [];
  return twins.length ? `a[href="${CSS.escape(href)}"]` : null;
}

document.addEventListener('click', event => {
  const fold = event.target.closest?.('summary')?.parentElement;
  if (fold) fold.dataset.touched = 'yes';
});

function follow(address) {
  if (address === 'poll') {
    setInterval(() => live.refresh(), 1500);
    return;
  }
  let polling = 0;
  const stream = new EventSource(address);
  const arrived = () => { clearInterval(polling); polling = 0; live.shows('Live', 'on'); };
  // what changed between the page and its stream is in neither: look once when the stream begins
  stream.addEventListener('ready', () => { arrived(); live.soon(); });
  stream.addEventListener('order', () => { arrived(); live.soon(); });
  stream.addEventListener('gone', () => { arrived(); live.soon(); });
  stream.addEventListener('reload', () => { arrived(); live.soon(); });
  stream.addEventListener('error', () => {
    if (stream.readyState === EventSource.OPEN) return;
    live.shows('Reconnecting', 'off');
    if (!polling) polling = setInterval(() => live.refresh(), POLL_MS);
    if (stream.readyState === EventSource.CLOSED) setTimeout(() => { clearInterval(polling); follow(address); }, 5 * POLL_MS);
  });
  addEventListener('pagehide', () => stream.close());
}

// --- plans beside forms

function plans(form) {
  let timer = 0, asked = null;

  async function plan() {
    clearTimeout(timer);
    asked?.abort();
    const own = asked = new AbortController();
    const panel = document.getElementById(form.dataset.plan);
    panel.setAttribute('aria-busy', 'true');
    const body = new URLSearchParams(new FormData(form));
    body.set('do', 'plan');
    try {
      const answer = await fetch(form.action, { method: 'POST', body, signal: own.signal });
      const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
      const fresh = page.getElementById(form.dataset.plan);
      const now = document.getElementById(form.dataset.plan);
      if (fresh) now.replaceChildren(...document.importNode(fresh, true).childNodes);
      else location.assign('/');   // the session is over
    } catch (error) {
      if (error.name !== 'AbortError') throw error;
      return;
    }
    document.getElementById(form.dataset.plan).removeAttribute('aria-busy');
  }

  const later = event => {
    if (['reason', 'csrf', 'key'].includes(event.target.name)) return;
    clearTimeout(timer);
    timer = setTimeout(() => { if (isComplete(form)) plan(); }, PLAN_MS);
  };
  form.addEventListener('input', later);
  form.addEventListener('submit', event => {
    if (event.submitter?.value === 'plan') { event.preventDefault(); plan(); return; }
    clearTimeout(timer);
    asked?.abort();
    // one press is one request; the browser sends the pressed button's value before this
    setTimeout(() => form.querySelectorAll('button').forEach(button => { button.disabled = true; }));
  });
  addEventListener('pageshow', () => form.querySelectorAll('button').forEach(button => { button.disabled = false; }));
}

const isComplete = form => [...form.querySelectorAll('[data-required]')].every(field => field.value !== '' || field.closest('[hidden]'));

// --- fields that depend on answers

function conditions(form) {
  const show = () => {
    for (const part of form.querySelectorAll('[data-when]')) {
      const field = form.elements[part.dataset.when];
      if (!field) continue;
      const answer = field.type === 'checkbox' ? String(field.checked) : field.value;
      part.hidden = !part.dataset.is.split('\n').includes(answer);
    }
  };
  form.addEventListener('input', show);
  show();
}

document.querySelector('.top nav [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });   // on a phone
const address = document.body.dataset.stream;
if (address) follow(address);
live.awaits();
document.querySelectorAll('form[data-plan]').forEach(plans);
document.querySelectorAll('form').forEach(conditions);
