import { screen } from '@testing-library/react';
import { clientOf, show, teamEntity, VIEW } from '../__testUtils__/service';
import { TeamCard } from './TeamCard';

const AT = 'GET /v1/teams/ae86';
const { head, values, pulls, changes, ...ROW } = VIEW;

describe('the card of a team', () => {
  it('counts what fails, waits and expires', async () => {
    const soon = new Date(Date.now() + 3_600_000).toISOString();
    const orders = [
      { ...ROW, order: 'garage-one', phase: 'Failing', reason: 'The disk is full' },
      { ...ROW, order: 'garage-two', expires: soon },
    ];
    const team = { team: 'ae86', total: 3, phases: { Failing: 1, Ready: 2 }, orders, more: false, cost: '36.00 EUR a month' };
    await show(<TeamCard />, clientOf({ [AT]: { body: team } }), teamEntity);

    expect(await screen.findByText('garage-one')).toBeInTheDocument();
    expect(screen.getByText('garage-two')).toBeInTheDocument();
    expect(screen.getByText('The disk is full')).toBeInTheDocument();
    expect(screen.getByText('36.00 EUR a month')).toBeInTheDocument();
  });

  it('says that a team has no orders', async () => {
    await show(<TeamCard />, clientOf({ [AT]: { body: { team: 'ae86', total: 0, phases: {}, orders: [], more: false } } }), teamEntity);
    expect(await screen.findByText('This team has no orders yet.')).toBeInTheDocument();
  });

  it('says that a group is not a team', async () => {
    await show(<TeamCard />, clientOf({}), teamEntity);
    expect(await screen.findByText('This group is not a team of the platform.')).toBeInTheDocument();
  });
});
