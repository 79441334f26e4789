// A person without JavaScript at the embedded forge: read a pull request, approve it, merge it.
import { seen, visit, wanted } from './browser.mjs';

await visit('forge', async person => {
  const { page } = person;
  const press = async words => {
    const button = await page.$(`::-p-xpath(//button[starts-with(normalize-space(.), '${words}')])`);
    await Promise.all([page.waitForNavigation(), button.click()]);
    return person.text();
  };
  await page.setJavaScriptEnabled(false);
  await page.authenticate(wanted.writer);
  await person.goto(wanted.signIn);
  await person.goto(wanted.pull);
  seen.before = await person.text();
  await person.shoot('pull');
  await page.type('#words', 'Looks **good** to me.');
  seen.approved = await press('Approve');
  await person.shoot('approved');
  seen.merged = await press('Merge');
  await person.shoot('merged');
});
