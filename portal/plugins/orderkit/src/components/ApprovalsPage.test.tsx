import { screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { clientOf, show } from '../__testUtils__/service';
import { Approval, Decided } from '../api';
import { ApprovalsPage } from './ApprovalsPage';

const LIST = 'GET /v1/approvals';
const DECIDE = 'POST /v1/orders/garage-ae86/approval';

const ORDER: Approval = {
  order: 'garage-ae86',
  team: 'ae86',
  kit: 'garage',
  requester: 'user:default/takumi',
  since: '2026-11-01T00:00:00Z',
  approval: 'the platform team, because it costs more than 100 EUR',
  url: 'https://forge.example.org/platform/ledger/pulls/7',
  head: 'a1b2c3d4e5f6',
  number: null,
  yours: true,
  reason: '',
};
const CHANGE: Approval = { ...ORDER, order: 'garage-rx7', number: 3, yours: false, reason: 'ann is not an approver of garage-rx7' };
const DECIDED: Decided = {
  order: 'garage-ae86', team: 'ae86', state: 'delivered', missing: null, doesNotCount: null, url: null, counts: true, number: null,
};

describe('the page of approvals', () => {
  it('shows what waits and why, with buttons only for whoever may use them', async () => {
    await show(<ApprovalsPage />, clientOf({ [LIST]: { body: { approvals: [ORDER, CHANGE] } } }));

    expect(await screen.findByText('1 request for you')).toBeInTheDocument();
    expect(screen.getByText('1 request for others')).toBeInTheDocument();
    expect(screen.getByText('You cannot approve it: ann is not an approver of garage-rx7.')).toBeInTheDocument();
    expect(screen.getAllByText(`Approval by ${ORDER.approval}`)).toHaveLength(2);
    expect(screen.getByRole('link', { name: 'new order' })).toHaveAttribute('href', ORDER.url);
    expect(screen.getByRole('button', { name: 'Approve garage-ae86' })).toBeEnabled();
    expect(screen.queryByRole('button', { name: 'Approve garage-rx7' })).toBeNull();
  });

  it('approves the head that was shown, and says what became of it', async () => {
    const asked: any[] = [];
    let waiting = [ORDER];
    const decide = () => {
      waiting = [];
      return { body: DECIDED };
    };
    await show(<ApprovalsPage />, clientOf({ [LIST]: () => ({ body: { approvals: waiting } }), [DECIDE]: decide }, asked));
    await userEvent.click(await screen.findByRole('button', { name: 'Approve garage-ae86' }));

    expect(await screen.findByText('garage-ae86: You approved it, and it is on its way.')).toBeInTheDocument();
    expect(await screen.findByText('Nothing waits for your approval.')).toBeInTheDocument();
    expect(asked.find(({ body }) => body)?.body).toEqual({ decision: 'approve', head: ORDER.head });
  });

  it('declines a change with a reason, and not without one', async () => {
    const asked: any[] = [];
    const change = { ...CHANGE, order: 'garage-ae86', yours: true };
    const declined = { body: { ...DECIDED, state: 'declined', number: 3 } };
    await show(<ApprovalsPage />, clientOf({ [LIST]: { body: { approvals: [change] } }, [DECIDE]: declined }, asked));
    await userEvent.click(await screen.findByRole('button', { name: 'Decline…' }));
    expect(screen.getByRole('button', { name: 'Decline garage-ae86' })).toBeDisabled();
    await userEvent.type(screen.getByLabelText('Why you decline garage-ae86'), 'too large');
    await userEvent.click(screen.getByRole('button', { name: 'Decline garage-ae86' }));

    expect(await screen.findByText('garage-ae86: You declined it.')).toBeInTheDocument();
    const sent = asked.find(({ body }) => body)?.body;
    expect(sent).toEqual({ decision: 'decline', head: CHANGE.head, number: 3, reason: 'too large' });
  });

  it('shows a refusal beside its request, with the way out', async () => {
    const error = { message: 'somebody pushed meanwhile', hint: 'look at it again' };
    const refused = { status: 409, body: { error } };
    await show(<ApprovalsPage />, clientOf({ [LIST]: { body: { approvals: [ORDER] } }, [DECIDE]: refused }));
    await userEvent.click(await screen.findByRole('button', { name: 'Approve garage-ae86' }));

    expect(await screen.findByText('somebody pushed meanwhile')).toBeInTheDocument();
    expect(screen.getByText('look at it again')).toBeInTheDocument();
    expect(screen.getByRole('button', { name: 'Approve garage-ae86' })).toBeEnabled();
  });
});
