// One person changes an order and ends it, in a real browser, beginning at the order's page: a link
// opens the form with today's value; a change that is refused, one that is committed, one that is
// reviewed, the end with the order's id typed. Wants {order, ending}. Started by test_browser_changes.py.
import { seen, visit, wanted } from './browser.mjs';

await visit('changing', async person => {
  await person.enter('/create');
  await person.shows('Create');
  await person.open(wanted.order);
  await person.shoot('order');
  seen.order = await person.text();

  await person.follow(wanted.order, 'Change budget');
  await person.field('budget');
  seen.budget = await person.value('budget');
  seen.shownOrder = await person.value('order_id');
  await person.shoot('form');
  await person.type('budget', '3');
  seen.refused = (await person.create('is refused')).task;
  await person.shoot('refused');

  await person.follow(wanted.order, 'Change budget');
  await person.field('budget');
  await person.type('budget', '9');
  await person.type('change_reason', 'two more races');
  seen.committed = (await person.create('Committed as')).task;
  await person.shoot('committed');

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
  await person.follow(wanted.ending, 'End the');
  await person.field('confirm');
  seen.end = await person.text();
  await person.type('confirm', 'garage-other');
  seen.unconfirmed = (await person.create('is not the order')).task;
  await person.shoot('unconfirmed');

  await person.follow(wanted.ending, 'End the');
  await person.field('confirm');
  await person.type('confirm', wanted.ending);
  seen.ended = (await person.create('has ended')).task;
  await person.shoot('ended');
});
