import type { TemplateExample } from '@backstage/plugin-scaffolder-node';

const example = (description: string, steps: string): TemplateExample => ({
  description,
  example: `steps:\n${steps}`,
});

export const orderExamples = [
  example(
    'Order a Stage Kit for a team, and go on when it is Ready.',
    `  - id: garage
    name: Order the Stage Kit
    action: orderkit:order
    input:
      kit: garage
      values:
        team_name: \${{ parameters.team }}
        stage: stage2
`,
  ),
  example(
    'Order it and go on as soon as Git has it.',
    `  - id: garage
    name: Order the Stage Kit
    action: orderkit:order
    input:
      kit: garage
      waitFor: written
      values:
        team_name: \${{ parameters.team }}
        stage: stage2
`,
  ),
];

export const changeExamples = [
  example(
    'Change one field of an order, and wait until it is Ready with it.',
    `  - id: tune
    name: Mount another kit
    action: orderkit:change
    input:
      order: garage-\${{ parameters.team }}
      values:
        stage: stage3
      reason: race day
`,
  ),
  example(
    'Propose a change as a pull request, whatever the kit says.',
    `  - id: tune
    name: Propose another kit
    action: orderkit:change
    input:
      order: garage-\${{ parameters.team }}
      values:
        stage: stage3
      how: review
`,
  ),
];

export const endExamples = [
  example(
    'End an order whose id the person typed.',
    `  - id: end
    name: End the order
    action: orderkit:end
    input:
      order: garage-\${{ parameters.team }}
      confirm: \${{ parameters.confirm }}
      reason: \${{ parameters.reason }}
`,
  ),
];
