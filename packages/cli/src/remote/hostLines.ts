/** A line for each machine that is worked on: rewritten in place on a terminal, and printed for good when it has ended. */
import type { Output } from '../io.ts';
import { fitText, printable } from '../output/text.ts';

export interface HostLines {
  show(host: string, step: string): void;
  /** The line of this host goes; the text stays. */
  end(host: string, text: string): Promise<void>;
}

/**
 * @param live where lines are rewritten; not a terminal: nowhere
 * @param lasting where the texts at the end go
 */
export function openHostLines(live: Output, lasting: Output): HostLines {
  const steps = new Map<string, string>();
  let painted = 0;
  const erase = () => (painted === 0 ? '' : `\x1b[${painted}A\r\x1b[J`);
  const paint = () => {
    const columns = Math.max(1, (live.columns() ?? 80) - 1);
    const room = Math.max(1, (live.rows() ?? 24) - 2);
    const lines = [...steps]
      .slice(0, room)
      .map(([host, step]) => fitText(printable(`${host}: ${step}`), columns));
    const text = `${erase()}${lines.map((line) => `${line}\n`).join('')}`;
    painted = lines.length;
    return text;
  };
  // A terminal that is gone has nothing to show progress to; the work itself continues.
  const write = (text: string) => void live.write(text).catch(() => {});
  return {
    show(host, step) {
      if (!live.isTerminal || steps.get(host) === step) return;
      steps.set(host, step);
      write(paint());
    },
    async end(host, text) {
      steps.delete(host);
      if (live.isTerminal) {
        const gone = erase();
        painted = 0;
        await live.write(gone);
      }
      await lasting.write(text);
      if (live.isTerminal) write(paint());
    },
  };
}
