// One person orders the stage kit in a real browser: sign in, choose the kit, mistype the team,
// mend it, review, create, follow the link to the repository. Wants {team}.
// Started by test_browser_journey.py.
import { pause, seen, visit, wanted } from './browser.mjs';

await visit('journey', async person => {
  const { page } = person;
  await person.goto('/create');
  await person.shows('Guest');
  await person.shoot('sign-in');
  await person.press('Enter');
  await person.shows('Stage Kit');
  await person.shoot('kits');

  await page.locator(
    `::-p-xpath((//*[text()='Stage Kit']/following::button[normalize-space(.)='Choose'])[1])`).click();
  await page.waitForSelector(person.picker('Team'));
  await person.shoot('form');
  await person.press('Review');
  await pause(500);
  await person.shoot('empty-form');
  seen.messages.push(await person.text());
  await person.fill('Team', 'No Good!');
  await person.choose('stage', 'Stage 2');
  await person.press('Review');
  await person.shows('must have 3 to 29 characters');
  seen.messages.push(await person.text());
  await person.shoot('bad-name');

  seen.teams = await person.picks('Team');
  await person.pick('Team', wanted.team);
  Object.assign(seen, await person.create('What happens now'));
  await person.shoot('task');

  const link = await page.waitForSelector(`::-p-xpath(//a[contains(., 'Repository')])`);
  seen.repository = await link.evaluate(found => found.href);
  await person.goto(seen.repository);
  await person.shoot('repository');
  seen.page = await person.text();
  await person.open(`garage-${wanted.team}`, `Stage Kit of team ${wanted.team}`);
  await person.shoot('catalog');
  seen.catalog = await person.text();
});
