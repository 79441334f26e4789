// One person fills in a generated form in a real browser: a text with a rule, a team and a system picked from
// the catalog, a switch that brings up a question, a choice, a number, a list. Wants {template, system, team}.
// Started by test_browser_generated.py.
import { seen, visit, wanted } from './browser.mjs';

await visit('filling', async person => {
  const { page } = person;
  await person.enter(`/create/templates/default/${wanted.template}`);
  await person.field('name');
  await person.shoot('first-page');
  seen.pages = [await person.text()];
  await person.type('name', 'No Good!');
  await person.pick('Team', wanted.team);
  await person.pick('Component', wanted.system);
  await person.press('Next');
  await person.shows('must begin with a letter');
  seen.messages.push(await person.text());
  await person.shoot('bad-name');
  await person.type('name', 'churn-model');
  await person.press('Next');

  await person.field('accelerator');
  seen.pages.push(await person.text());
  seen.before = await person.has('acceleratorModel');
  await person.shoot('second-page');
  await page.locator('#root_accelerator').click();
  await person.field('acceleratorModel');
  seen.after = await person.has('acceleratorModel');
  await person.choose('acceleratorModel', 'L4 (24 GB)');
  await person.type('diskGib', '25');
  for (const [index, name] of ['polars', 'scikit-learn'].entries()) {
    await page.locator(`::-p-xpath((//button[normalize-space(.)='Back']/preceding::button)[last()])`).click();
    await person.field(`packages_${index}`);
    await person.type(`packages_${index}`, name);
  }
  await person.shoot('filled');
  Object.assign(seen, await person.create('What happens now'));
  await person.shoot('task');
});
