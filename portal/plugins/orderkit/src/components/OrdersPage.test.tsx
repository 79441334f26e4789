import { screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { Answers, clientOf, KITS, show, VIEW } from '../__testUtils__/service';
import { OrdersPage } from './OrdersPage';
import { PlanField } from './PlanField';
import { TeamField } from './TeamField';

const ROW = { ...VIEW, order: 'garage-rx7', phase: 'Failing', reason: 'The disk is full', ready: false };
const ALL = 'GET /v1/orders?sort=phase&limit=50';
const FAILING = `${ALL}&phase=Failing`;

const open = (element: JSX.Element, answers: Answers, asked: any[] = []) =>
  show(element, clientOf(answers, asked));

describe('the page of orders', () => {
  it('shows state, reason and cost in columns, and only failing ones if the address says so', async () => {
    window.history.replaceState(null, '', '?state=failing');
    await open(<OrdersPage />, { [FAILING]: { body: { orders: [ROW], cursor: null } } });

    expect(await screen.findByText('1 order')).toBeInTheDocument();
    expect(screen.getByRole('link', { name: 'garage-rx7' })).toHaveAttribute('href', '/catalog/default/component/garage-rx7');
    expect(screen.getByText('The disk is full')).toBeInTheDocument();
    expect(screen.getAllByRole('columnheader').map(each => each.textContent)).toContain('Cost');
    window.history.replaceState(null, '', '/');
  });

  it('finds words, and asks for more than a page', async () => {
    const asked: any[] = [];
    const orders = { body: { orders: [ROW], cursor: 'next' } };
    await open(<OrdersPage />, { [ALL]: orders, [`${ALL}&text=disk`]: orders, 'GET /v1/orders?sort=phase&limit=100&text=disk': { body: { orders: [ROW, VIEW], cursor: null } } }, asked);
    await userEvent.type(await screen.findByLabelText('Search'), 'disk');
    expect(await screen.findByText('The first 1 orders')).toBeInTheDocument();
    await userEvent.click(screen.getByRole('button', { name: 'Show more' }));

    expect(await screen.findByText('2 orders', {}, { timeout: 3_000 })).toBeInTheDocument();
  });
});

const field = (formData?: string) => ({
  formData,
  schema: { title: 'Team' },
  uiSchema: { 'ui:options': { kit: 'garage' } },
});

describe('the fields of a form', () => {
  it('offers the teams that may order, as the catalog writes groups', async () => {
    const chosen: string[] = [];
    const answers = { 'GET /v1/kits/garage/teams': { body: { kit: 'garage', teams: ['ae86', 'rx7'] } } };
    await open(<TeamField {...field()} onChange={value => chosen.push(value)} />, answers);
    await userEvent.click(await screen.findByRole('button', { name: /Team/ }));
    expect(screen.getAllByRole('option').map(each => each.textContent)).toEqual(['ae86', 'rx7']);
    await userEvent.click(screen.getByRole('option', { name: 'rx7' }));

    expect(chosen).toEqual(['group:default/rx7']);
  });

  it('says so if a form was opened with a team that may not order', async () => {
    const answers = { 'GET /v1/kits/garage/teams': { body: { kit: 'garage', teams: [] } } };
    await open(<TeamField {...field('group:default/other')} onChange={() => {}} />, answers);

    expect((await screen.findAllByText('other (may not order this kit)')).length).toBeGreaterThan(0);
    expect(screen.getByText(/None of your teams may order this kit/)).toBeInTheDocument();
  });

  it('shows plan, price and who has to approve before the order is placed', async () => {
    const asked: any[] = [];
    const money = { before: '0', after: '12.00', difference: '12.00' };
    const costs = {
      currency: 'EUR', table: 'prices.yaml', source: 'list', date: '2026-11-01', stale: [], monthly: money, upTo: { before: '0', after: '0' },
      before: [], after: [{ path: 'disk', resource: 'Disk', title: 'Disk', reckoned: '3 x 4 EUR', monthly: '12', upTo: false, assumes: '' }],
      notPriced: [], notReckoned: [],
    };
    const none = { paused: [], pinned: [], drift: [], fields: [], dangers: [], faults: [], unknowns: [], unchanged: 0 };
    const resources = [{ apiVersion: 'v1', kind: 'Disk', name: 'a', path: 'disk', action: 'added', fields: [] }];
    const plan = { ...none, summary: 'It makes 1 part.', ready: true, approval: 'finance, because it costs over 10 EUR', costs, resources };
    const answers = { 'POST /v1/kits/garage/plan': { body: { order: 'garage-rx7', plan } }, 'GET /v1/kits': { body: KITS } };
    const props = { ...field(), formData: null, uiSchema: { 'ui:options': { kit: 'garage', parameters: ['team_name', 'budget'] } } };
    const formData = { team_name: 'rx7', forge_host: 'hidden' };
    await open(<PlanField {...props} formContext={{ formData }} onChange={() => {}} />, answers, asked);

    expect(await screen.findByText('This will wait for approval by finance, because it costs over 10 EUR')).toBeInTheDocument();
    expect(screen.getByText('12.00 EUR a month')).toBeInTheDocument();
    expect(screen.getByText(/3 x 4 EUR/)).toBeInTheDocument();
    expect(asked.find(each => each.body).body).toEqual({ values: { team_name: 'rx7' } });
  });

  it('shows what an order would be refused for, with the way out', async () => {
    const error = { message: 'garage-rx7 exists already', hint: 'choose another name' };
    const answers = { 'POST /v1/kits/garage/plan': { status: 409, body: { error } }, 'GET /v1/kits': { body: KITS } };
    await open(<PlanField {...field()} formData={null} onChange={() => {}} />, answers);

    expect(await screen.findByText('garage-rx7 exists already')).toBeInTheDocument();
    expect(screen.getByText('choose another name')).toBeInTheDocument();
  });
});
