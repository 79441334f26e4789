// One person orders an AI agent over a dataset in a real browser. The dataset is a file that they put into the
// bucket while the form is open elsewhere: they look until the form offers it. Wants {agent, team, bucket,
// file, dataset, description}. Started by test_browser_agents.py.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pause, seen, visit, wanted } from './browser.mjs';

const FORM = '/create/templates/default/datasetagent';

await visit('agents', async person => {
  await person.enter(FORM);
  await person.field('agent_name');
  await person.shoot('form');
  seen.form = await person.text();
  seen.before = await person.picks('Dataset');
  await person.shoot('datasets');

  writeFileSync(join(wanted.bucket, wanted.file), 'a,b\n1,2\n'.repeat(1000));
  const put = performance.now();
  do {
    await pause(1_000);
    await person.goto(FORM);
    await person.field('agent_name');
    await pause(500);
    seen.after = await person.picks('Dataset');
    seen.offeredAfterS = (performance.now() - put) / 1000;
  } while (!seen.after.some(each => each.includes(wanted.dataset)) && seen.offeredAfterS < 240);

  await person.type('agent_name', 'No Good!');
  await person.pick('Dataset', wanted.dataset);
  await person.type('budget_usd', '5');
  await person.type('description', wanted.description);
  await person.pick('Team', wanted.team);
  await person.press('Review');
  await person.shows('must have 3 to 24');
  seen.messages.push(await person.text());
  await person.shoot('bad-name');

  await person.type('agent_name', wanted.agent);
  Object.assign(seen, await person.create('What happens now'));
  await person.shoot('task');
});
