import { act, render, screen } from '@testing-library/react';
import { When } from './parts';

describe('a time from now', () => {
  beforeEach(() => jest.useFakeTimers({ now: Date.parse('2026-11-23T10:00:09Z') }));
  afterEach(() => jest.useRealTimers());

  it('stays right while somebody looks at it', () => {
    render(<When time="2026-11-23T10:00:00Z" />);
    expect(screen.getByText('9 seconds ago')).toBeInTheDocument();

    act(() => jest.advanceTimersByTime(120_000));

    expect(screen.getByText('2 minutes ago')).toBeInTheDocument();
  });
});
