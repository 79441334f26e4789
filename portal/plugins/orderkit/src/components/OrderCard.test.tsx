/* eslint-disable no-script-url */
import { screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { clientOf, KITS, show, VIEW } from '../__testUtils__/service';
import { OrderCard } from './OrderCard';

const AT = 'GET /v1/orders/garage-ae86/view';
const refused = (status: number, message: string, hint = '') => ({ status, body: { error: { message, hint } } });

describe('the card of an order', () => {
  it('shows phase, parts, commit, cost, owner and outputs', async () => {
    await show(<OrderCard />, clientOf({ [AT]: { body: VIEW } }));

    expect(await screen.findByTestId('orderkit-phase')).toHaveTextContent('Ready');
    expect(screen.getByText(/3 of 3 ready/)).toBeInTheDocument();
    expect(screen.getByText('a1b2c3d4')).toBeInTheDocument();
    expect(screen.getByText('12.00 EUR a month')).toBeInTheDocument();
    expect(screen.getByText('takumi')).toBeInTheDocument();
    expect(screen.getByRole('link', { name: 'https://garage.example.org/' })).toHaveAttribute('rel', 'noopener noreferrer');
  });

  it('says what fails and what to do', async () => {
    const failing = { apiVersion: 'v1', kind: 'ConfigMap', name: 'sheet', reason: 'no' };
    const view = { ...VIEW, phase: 'Failing', reason: 'The disk is full', remedy: 'Delete something.' };
    await show(<OrderCard />, clientOf({ [AT]: { body: { ...view, parts: { ready: 2, total: 3, failing } } } }));

    expect(await screen.findByTestId('orderkit-phase')).toHaveTextContent('Failing');
    expect(screen.getByText('The disk is full')).toBeInTheDocument();
    expect(screen.getByText('Delete something.')).toBeInTheDocument();
    expect(screen.getByText(/ConfigMap sheet fails/)).toBeInTheDocument();
  });

  it('never shows a phase that it does not know like a good one', async () => {
    await show(<OrderCard />, clientOf({ [AT]: { body: { ...VIEW, phase: 'constructor' } } }));

    expect(await screen.findByTestId('orderkit-phase')).toHaveTextContent('? constructor');
  });

  it('says who has to agree', async () => {
    const view = { ...VIEW, phase: 'Waiting', approval: 'A lead of ae86 has to agree: it costs more than 100 EUR.' };
    await show(<OrderCard />, clientOf({ [AT]: { body: view } }));

    expect(await screen.findByTestId('orderkit-phase')).toHaveTextContent('Waiting for approval');
    expect(screen.getByText(/A lead of ae86 has to agree/)).toBeInTheDocument();
  });

  it('shows hostile values as the text that they are, and links to nothing that runs', async () => {
    const bad = '<img src=x onerror=alert(1)>\u202e\u0007';
    const outputs = [{ name: 'url', title: bad, value: 'javascript:alert(1)', link: true, secret: false }];
    const view = { ...VIEW, phase: 'Failing', reason: bad + 'x'.repeat(1_000_000), outputs, repository: 'data:text/html,x' };
    const { container } = await show(<OrderCard />, clientOf({ [AT]: { body: view } }));

    await screen.findByTestId('orderkit-phase');
    expect(container.querySelector('img')).toBeNull();
    expect(screen.getByText('javascript:alert(1)').closest('a')).toBeNull();
    expect(container.querySelector('a[href^="data:"], a[href^="javascript:"]')).toBeNull();
    expect(container.textContent!.length).toBeLessThan(5_000);
    expect(container.textContent).not.toContain('\u202e');
  });

  it('says that it is forbidden, and shows nothing', async () => {
    await show(<OrderCard />, clientOf({ [AT]: refused(403, 'garage-ae86 is not an order of your teams') }));

    expect(await screen.findByText('You may not see this')).toBeInTheDocument();
    expect(screen.queryByTestId('orderkit-phase')).toBeNull();
  });

  it('says in words that the service cannot be reached, and tries again', async () => {
    let works = false;
    const client = clientOf({ [AT]: () => (works ? { body: VIEW } : { status: 503, body: 'Error: ECONNREFUSED' }) });
    await show(<OrderCard />, client);
    expect(await screen.findByText('Orderkit cannot be reached (503)')).toBeInTheDocument();

    works = true;
    await userEvent.click(screen.getByRole('button', { name: 'Try again' }));

    expect(await screen.findByTestId('orderkit-phase')).toHaveTextContent('Ready');
  });

  it('shows the proof of an order that has ended', async () => {
    const end = { order: 'garage-ae86', state: 'ended', message: '', gone: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'sheet' }] };
    let asked = 0;
    const client = clientOf({
      [AT]: refused(404, 'it has ended'),
      'GET /v1/orders/garage-ae86/end': () => {
        asked += 1;
        return { body: { ...end, state: asked > 1 ? 'ended' : 'ending' } };
      },
    });
    await show(<OrderCard />, client);
    expect(await screen.findByText('It is ending')).toBeInTheDocument();

    expect(await screen.findByText('garage-ae86 has ended')).toBeInTheDocument();
    expect(screen.getByText('ConfigMap sheet')).toBeInTheDocument();
  });

  it('leads from a sentence to the change that helps, with its plan', async () => {
    const attention = [{ sentence: 'The budget is spent', change: 'budget', button: 'Raise the budget' }];
    const dangers = [{ path: 'x', code: 'restart', message: 'It starts again' }];
    const plan = { summary: 'One field changes', ready: true, unchanged: 3, fields: [], resources: [], dangers, faults: [], unknowns: [], paused: [], pinned: [], drift: [], costs: null };
    const asked: any[] = [];
    const answers = {
      [AT]: { body: { ...VIEW, phase: 'Attention', attention } },
      'GET /v1/kits': { body: KITS },
      'POST /v1/orders/garage-ae86/plan': { body: { plan } },
      'POST /v1/orders/garage-ae86/changes': { status: 201, body: { state: 'committed', commit: 'feedbeef00', pull: null, url: '' } },
    };
    await show(<OrderCard />, clientOf(answers, asked));
    await userEvent.click(await screen.findByRole('button', { name: 'Raise the budget' }));
    const field = await screen.findByLabelText('Budget');
    await userEvent.clear(field);
    await userEvent.type(field, '20');

    expect(await screen.findByText(/One field changes/)).toBeInTheDocument();
    expect(screen.getByText('It starts again')).toBeInTheDocument();
    expect(screen.queryByRole('checkbox')).toBeNull();
    await userEvent.click(screen.getByRole('button', { name: 'Change it' }));

    expect(await screen.findByText(/Committed as feedbeef/)).toBeInTheDocument();
    const sent = asked.find(each => each.path.endsWith('/changes'));
    expect(sent.body).toEqual({ change: 'budget', values: { budget: 20 }, base: 'a1b2c3d4e5f6' });
    expect(sent.headers['Idempotency-Key']).toMatch(/^[0-9a-f]{32}$/);
  });

  it('asks whether data may go, only where the plan says that it goes', async () => {
    const attention = [{ sentence: 'The budget is spent', change: 'budget', button: 'Raise the budget' }];
    const dangers = [{ path: 'x', code: 'data-loss', message: 'The bucket is deleted' }];
    const plan = { summary: 'One field changes', ready: true, unchanged: 3, fields: [], resources: [], dangers, faults: [], unknowns: [], paused: [], pinned: [], drift: [], costs: null };
    const asked: any[] = [];
    const answers = {
      [AT]: { body: { ...VIEW, phase: 'Attention', attention } },
      'GET /v1/kits': { body: KITS },
      'POST /v1/orders/garage-ae86/plan': { body: { plan } },
      'POST /v1/orders/garage-ae86/changes': { status: 201, body: { state: 'committed', commit: 'feedbeef00', pull: null, url: '' } },
    };
    await show(<OrderCard />, clientOf(answers, asked));
    await userEvent.click(await screen.findByRole('button', { name: 'Raise the budget' }));
    await userEvent.type(await screen.findByLabelText('Budget'), '0');
    await userEvent.click(await screen.findByRole('checkbox'));
    await userEvent.click(screen.getByRole('button', { name: 'Change it' }));

    expect(await screen.findByText(/Committed as feedbeef/)).toBeInTheDocument();
    expect(asked.find(each => each.path.endsWith('/changes')).body.acceptLoss).toBe(true);
  });

  it('shows a conflict with both ways out, and writes nothing', async () => {
    const conflict = { field: 'spec.budget', seen: 5, now: 9, wanted: 20, commit: 'c0ffee', author: '', requester: 'user:default/ryosuke' };
    let now = VIEW;
    const answers = {
      [AT]: () => ({ body: { ...now, attention: [{ sentence: 'Look', change: 'budget', button: 'Raise' }] } }),
      'GET /v1/kits': { body: KITS },
      'POST /v1/orders/garage-ae86/plan': { status: 409, body: { error: { message: 'conflict', hint: '', conflicts: [conflict] } } },
    };
    await show(<OrderCard />, clientOf(answers));
    await userEvent.click(await screen.findByRole('button', { name: 'Raise' }));
    const field = await screen.findByLabelText('Budget');
    await userEvent.clear(field);
    await userEvent.type(field, '20');
    expect(await screen.findByTestId('orderkit-conflicts')).toHaveTextContent(/5.*9.*20.*ryosuke/);

    now = { ...VIEW, values: { budget: 9 }, head: 'c0ffee' };
    await userEvent.click(screen.getByRole('button', { name: 'Take what is there' }));

    await waitFor(() => expect(screen.getByLabelText('Budget')).toHaveValue('9'));
  });
});
