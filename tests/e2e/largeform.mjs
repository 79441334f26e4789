// One person fills in the form of an imported XRD with 258 values: required ones, a group, and a few rare ones as
// YAML. Wants {template, team}. Started by test_wild_forms.py.
import { seen, visit, wanted } from './browser.mjs';

await visit('largeform', async person => {
  const { page } = person;
  await page.setViewport({ width: 1280, height: 2200 });   // a taller page is drawn below the sidebar
  await person.enter(`/create/templates/default/${wanted.template}`);
  await person.field('vmCount');
  await person.shoot('first-page');
  seen.pages = [await person.text()];
  await person.type('name', 'web');
  await person.pick('Team', wanted.team);
  await person.choose('region', 'eu');
  await person.type('vmCount', '3');
  await person.press('Next');

  await person.field('compute_setting00');
  await person.shoot('group');
  seen.pages.push(await person.text());
  await person.type('compute_setting00', 'fast');
  await person.press('Next');

  await person.field('more_settings');
  seen.pages.push(await person.text());
  await person.shoot('rare');
  await page.locator('#root_more_settings').fill(wanted.text);
  await person.shoot('rare-filled');
  Object.assign(seen, await person.create('What happens now'));
  await person.shoot('task');
});
