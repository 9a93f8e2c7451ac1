/**
 * For programs of tests, after `dir`, `settle`, `join` and `readFileSync`: `verdictOn` waits until the agent has read a checkpoint
 * and found it good or bad. A program that ends before that may end with what it saved unknown, as it may on any busy machine.
 */
export const waitForVerdict: string = `
    const verdictOn = async (name) => {
      for (;;) {
        try {
          const { checkpoints } = JSON.parse(readFileSync(join(dir, 'checkpoints_index.json'), 'utf8'));
          if (checkpoints.some((each) => each.name === name && each.verdict !== 'unverified')) return;
        } catch {
          // It is not there yet.
        }
        await settle(20);
      }
    };`;
