// The second day of an agent in a real browser: a larger budget, another dataset, the end. Each form opens
// from the order's page with what Git holds. Wants {order, other, unready}. Started by test_browser_agents.py.
import { seen, visit, wanted } from './browser.mjs';

await visit('agentsday2', async person => {
  const swap = () => person.follow(wanted.order, 'Work on another dataset');

  await person.enter('/create');
  await person.shows('Create');
  await person.open(wanted.order);
  await person.shoot('order');
  seen.order = await person.text();

  await person.follow(wanted.order, 'Change the budget');
  await person.field('budget_usd');
  seen.budget = await person.value('budget_usd');
  await person.type('budget_usd', '20');
  seen.spent = await person.value('at_least');
  seen.raised = (await person.create('Committed as')).task;
  await person.shoot('raised');

  await swap();
  seen.dataset = await person.page.$eval(person.picker('Dataset'), found => found.value);
  await person.shoot('swap');
  seen.itself = (await person.create('nothing would change')).task;
  await person.shoot('itself');

  await swap();
  seen.offered = await person.picks('Dataset');
  await person.fill('Dataset', `resource:default/${wanted.unready}`);
  seen.unready = (await person.create('not ready')).task;
  await person.shoot('unready');

  await swap();
  await person.pick('Dataset', wanted.other);
  seen.swapped = (await person.create('Committed as')).task;
  await person.shoot('swapped');

  await person.follow(wanted.order, 'End the', 'confirm');
  await person.shoot('end');
  seen.end = await person.text();
  seen.takesBucket = await person.page.$eval('#root_take_bucket', found => found.checked);
  await person.type('confirm', wanted.order);
  seen.ended = (await person.create('has ended')).task;
  await person.shoot('ended');
});
