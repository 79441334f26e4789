import { screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { clientOf, KITS, show, VIEW } from '../__testUtils__/service';
import { OrderTab } from './OrderTab';

const node = (kind: string, ready: string, children: any[] = [], reason = '') => ({
  apiVersion: 'v1', kind, name: kind.toLowerCase(), synced: 'True', ready, reason, children,
});
const tree = node('Application', '-', [
  node('XGarage', 'False', [node('ConfigMap', '-'), node('Bucket', 'False', [], 'quota exceeded'), node('Topic', 'True', [node('Policy', 'True')])]),
]);
const events = [
  { at: '2026-11-01T00:00:00Z', type: 'Warning', reason: 'Quota', message: 'no more buckets', count: 3, object: { apiVersion: 'v1', kind: 'Bucket', name: 'bucket' } },
];
const ANSWERS = {
  'GET /v1/orders/garage-ae86/view': { body: VIEW },
  'GET /v1/orders/garage-ae86/trace': { body: { tree } },
  'GET /v1/orders/garage-ae86/events?limit=200': { body: { events } },
  'GET /v1/kits': { body: KITS },
};

describe('the tab of an order', () => {
  it('unfolds what fails, and paints nothing green that says nothing', async () => {
    await show(<OrderTab />, clientOf(ANSWERS));

    const bucket = (await screen.findByText('quota exceeded')).closest('details');
    expect(bucket).toHaveAttribute('open');
    expect(screen.getByText('topic').closest('details')).not.toHaveAttribute('open');
    const plain = screen.getByText('configmap').closest('summary')!;
    expect(plain.querySelector('[aria-label="ready"]')).toBeNull();
    expect((await screen.findAllByText('no more buckets')).length).toBe(2);
  });

  it('keeps the panel in the address, and opens the one that the address names', async () => {
    window.history.replaceState(null, '', '?panel=history&other=1');
    await show(<OrderTab />, clientOf(ANSWERS));

    expect(await screen.findByRole('tab', { name: 'History' })).toHaveAttribute('aria-selected', 'true');
    await userEvent.click(screen.getByRole('tab', { name: 'End' }));
    expect(window.location.search).toBe('?panel=end&other=1');
    await userEvent.click(screen.getByRole('tab', { name: 'Parts' }));
    expect(window.location.search).toBe('?other=1');
    window.history.replaceState(null, '', '/');
  });

  it('shows the history and takes a change back with its plan', async () => {
    const entry = {
      commit: 'feedbeef00', when: '2026-11-01T00:00:00Z', author: 'bot', summary: 'Change budget', byHand: false, signature: 'valid',
      requester: 'user:default/ryosuke', reason: 'race day', ordered: false, fields: [{ field: 'budget', from: 5, to: 9 }],
    };
    const plan = { summary: 'Back to 5', ready: true, unchanged: 3, fields: [], resources: [], dangers: [], faults: [], unknowns: [], paused: [], pinned: [], drift: [], costs: null };
    const asked: any[] = [];
    const reverts = () => ({ body: { state: asked[asked.length - 1].body.dryRun ? 'planned' : 'committed', commit: 'abadcafe00', pull: null, plan, planWhyNot: '', url: '' } });
    await show(<OrderTab />, clientOf({
      ...ANSWERS,
      'GET /v1/orders/garage-ae86/history?limit=100': { body: { entries: [entry] } },
      'POST /v1/orders/garage-ae86/reverts': reverts,
    }, asked));
    await userEvent.click(await screen.findByRole('tab', { name: 'History' }));
    await userEvent.click(await screen.findByRole('button', { name: 'Take back feedbeef' }));
    expect(await screen.findByText(/Back to 5/)).toBeInTheDocument();

    await userEvent.click(screen.getByRole('button', { name: 'Take it back' }));

    expect(await screen.findByText('Committed as abadcafe.')).toBeInTheDocument();
  });

  it('says what goes and what stays, and ends only what was confirmed', async () => {
    const asked: any[] = [];
    await show(<OrderTab />, clientOf({
      ...ANSWERS,
      'GET /v1/orders/garage-ae86/end/preview': {
        body: { order: 'garage-ae86', stays: ['The bucket, with all it holds'], takes: [{ name: 'bucket', ask: 'Delete the bucket too' }], repository: 'archive', unread: '' },
      },
      'POST /v1/orders/garage-ae86/end': { status: 400, body: { error: { message: "'other' is not the order's id", hint: 'type garage-ae86' } } },
    }, asked));
    await userEvent.click(await screen.findByRole('tab', { name: 'End' }));
    expect(await screen.findByText('The bucket, with all it holds')).toBeInTheDocument();
    expect(await screen.findByText('Bucket bucket')).toBeInTheDocument();
    expect(screen.getByRole('button', { name: 'End garage-ae86' })).toBeDisabled();

    await userEvent.click(screen.getByRole('checkbox', { name: 'Delete the bucket too' }));
    await userEvent.type(screen.getByLabelText('Type garage-ae86 to confirm'), 'other');
    await userEvent.click(screen.getByRole('button', { name: 'End garage-ae86' }));

    expect(await screen.findByText("'other' is not the order's id")).toBeInTheDocument();
    expect(asked.find(each => each.path.endsWith('/end') && each.body).body).toEqual({ confirm: 'other', take: { bucket: true } });
  });
});
