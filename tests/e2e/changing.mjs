// One person changes an order and ends it, in a real browser, beginning at the order's page: a link
// opens the form with today's value; a change that is refused, one that conflicts and is started over, one
// that is committed, one that is reviewed, one whose form was opened without its order; the end with the
// order's id typed, and links to what has ended. Wants {order, ending, service}. Started by test_browser_changes.py.
import { seen, visit, wanted } from './browser.mjs';

// Somebody else changes the order meanwhile.
async function elsewhere(values) {
  const guest = await fetch(`${wanted.portal}/api/auth/guest/refresh`, { method: 'POST' });
  const { token } = (await guest.json()).backstageIdentity;
  const answer = await fetch(`${wanted.portal}/api/proxy/orderkit/v1/orders/${wanted.order}/changes`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ values }),
  });
  if (!answer.ok) throw new Error(await answer.text());
}

await visit('changing', async person => {
  await person.enter('/create');
  await person.shows('Stage Kit');
  await person.shoot('create');
  seen.create = await person.text();
  await person.open(wanted.order);
  await person.shoot('order');
  seen.order = await person.text();

  await person.follow(wanted.order, 'Change budget');
  await person.field('budget');
  seen.budget = await person.value('budget');
  seen.shownOrder = await person.value('order_id');
  await person.shoot('form');
  await person.type('budget', '3');
  const refused = await person.create('is refused');
  seen.refused = refused.task;
  seen.changeButton = refused.button;
  await person.shoot('refused');

  await person.follow(wanted.order, 'Change details');
  await person.field('laps');
  await person.type('laps', '5');
  await elsewhere({ laps: 9 });
  seen.conflict = (await person.create('laps is 9 now')).task;
  await person.shoot('conflict');
  await person.press('Start Over');
  await person.field('laps');
  seen.startedOver = await person.value('laps');
  seen.overridden = (await person.create('Committed as')).task;
  await person.shoot('started-over');

  await person.follow(wanted.order, 'Change budget');
  await person.field('budget');
  await person.type('budget', '9');
  await person.type('change_reason', 'two more races');
  seen.committed = (await person.create('Committed as')).task;
  await person.shoot('committed');

  await person.goto('/create/templates/default/garage.budget');
  await person.field('order_ref');
  seen.emptyForm = await person.text();
  seen.orders = await person.picks('Order');
  await person.pick('Order', wanted.order);
  await person.shoot('which-order');
  seen.notYet = (await person.create('Nothing was changed yet')).task;
  await person.shoot('not-yet');
  const onward = await person.page.waitForSelector(`::-p-xpath(//a[contains(., 'Continue: Change budget')])`);
  await person.goto(await onward.evaluate(found => found.href));
  await person.field('budget');
  seen.continued = await person.value('budget');

  await person.follow(wanted.order, 'Change level');
  await person.field('level');
  seen.levels = await person.offers('#root_level');
  await person.shoot('next-levels');

  await person.follow(wanted.order, 'Change paint');
  await person.field('motto');
  await person.type('motto', 'fast');
  seen.proposed = (await person.create('waits for review')).task;
  await person.shoot('proposed');

  await person.open(wanted.ending);
  await person.follow(wanted.ending, 'End the', 'confirm');
  seen.end = await person.text();
  await person.type('confirm', 'garage-other');
  seen.unconfirmed = (await person.create('is not the order')).task;
  await person.shoot('unconfirmed');

  await person.follow(wanted.ending, 'End the', 'confirm');
  await person.type('confirm', wanted.ending);
  const ended = await person.create('has ended');
  seen.ended = ended.task;
  seen.endButton = ended.button;
  await person.shoot('ended');

  await person.goto(`${wanted.service}/v1/orders/${wanted.ending}/changes/budget/form`);
  seen.gone = await person.shows('ended on');
  await person.shoot('link-to-ended');
  await person.goto(`${wanted.service}/v1/orders/garage-nobody/end/form`);
  seen.unknown = await person.shows('No such order');
  await person.shoot('link-to-nothing');
});
