import { screen } from '@testing-library/react';
import { clientOf, show, teamEntity, VIEW } from '../__testUtils__/service';
import { Row, Team } from '../api';
import { TeamCard } from './TeamCard';

const AT = 'GET /v1/teams/ae86';
const { head, values, pulls, changes, ...ROW } = VIEW;

const TEAM: Team = {
  team: 'ae86',
  members: null,
  kits: null,
  namespaces: [],
  limits: {},
  costs: { sums: [], notKnown: 0 },
  costExcess: null,
  total: 0,
  phases: {},
  orders: [],
  more: false,
};

describe('the card of a team', () => {
  it('counts what fails, waits and expires', async () => {
    const soon = new Date(Date.now() + 3_600_000).toISOString();
    const orders: Row[] = [
      { ...ROW, order: 'garage-one', phase: 'Failing', reason: 'The disk is full' },
      { ...ROW, order: 'garage-two', expires: soon },
    ];
    const sums = [{ currency: 'EUR', monthly: '36', upTo: '0', orders: 3, partlyKnown: 0 }];
    const team = { ...TEAM, total: 3, phases: { Failing: 1, Ready: 2 }, orders, costs: { sums, notKnown: 0 } };
    await show(<TeamCard />, clientOf({ [AT]: { body: team } }), teamEntity);

    expect(await screen.findByText('garage-one')).toBeInTheDocument();
    expect(screen.getByText('garage-two')).toBeInTheDocument();
    expect(screen.getByText('The disk is full')).toBeInTheDocument();
    expect(screen.getByText('36 EUR a month')).toBeInTheDocument();
  });

  it('says that a team has no orders', async () => {
    await show(<TeamCard />, clientOf({ [AT]: { body: TEAM } }), teamEntity);
    expect(await screen.findByText('This team has no orders yet.')).toBeInTheDocument();
  });

  it('says that a group is not a team', async () => {
    await show(<TeamCard />, clientOf({}), teamEntity);
    expect(await screen.findByText('This group is not a team of the platform.')).toBeInTheDocument();
  });
});
