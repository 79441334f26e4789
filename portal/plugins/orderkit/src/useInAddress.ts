import { useCallback, useState } from 'react';

/**
 * One of some choices, the first by default, kept in the page's address: whoever opens the address sees the same.
 *
 * The entry in the browser's history is replaced, so that Back leaves the page. Written without the router, whose
 * hooks differ between the Backstages that the plugin supports.
 */
export function useInAddress(name: string, choices: string[]): [string, (choice: string) => void] {
  const [choice, setChoice] = useState(() => {
    const given = new URLSearchParams(window.location.search).get(name) ?? '';
    return choices.includes(given) ? given : choices[0];
  });
  const choose = useCallback(
    (next: string) => {
      const address = new URL(window.location.href);
      if (next === choices[0]) address.searchParams.delete(name);
      else address.searchParams.set(name, next);
      window.history.replaceState(window.history.state, '', address);
      setChoice(next);
    },
    [name, choices],
  );
  return [choice, choose];
}
