import { describe, expect, it } from 'vitest';
import { freezeOrKill, freezeOrKillWhile, killUntilGone } from './freeze.ts';
import type { TaskGroup } from './taskGroup.ts';

/** Notes what is done to it, and does nothing unless told to. */
class FakeGroup implements TaskGroup {
  readonly looksNeeded = 1;
  readonly done: string[] = [];
  frozen = false;
  empty = false;
  onFreeze: (times: number) => void = () => {};
  onKill: () => boolean = () => {
    this.empty = true;
    return true;
  };

  pids(): number[] {
    return this.empty ? [] : [1];
  }
  isEmpty(): boolean {
    return this.empty;
  }
  kill(): boolean {
    this.done.push('kill');
    return this.onKill();
  }
  freeze(): void {
    this.done.push('freeze');
    this.onFreeze(this.done.filter((what) => what === 'freeze').length);
  }
  isFrozen(): boolean {
    return this.frozen;
  }
  thaw(): void {
    this.done.push('thaw');
  }
  release(): boolean {
    return true;
  }
}

describe('freezeOrKill', () => {
  it('asks again for as long as the kernel has not frozen all', async () => {
    const group = new FakeGroup();
    group.onFreeze = (times) => {
      group.frozen = times === 4;
    };
    expect(await freezeOrKill(group)).toBe('frozen');
    expect(group.done).toEqual(['freeze', 'freeze', 'freeze', 'freeze']);
  });

  it('kills what does not freeze, and thaws it so that SIGKILL is felt', async () => {
    const group = new FakeGroup();
    expect(await freezeOrKill(group)).toBe('killed');
    expect(group.done.slice(-3)).toEqual(['freeze', 'kill', 'thaw']);
  });

  it('kills what it cannot even ask to freeze', async () => {
    const group = new FakeGroup();
    group.onFreeze = () => {
      throw new Error('EROFS');
    };
    expect(await freezeOrKill(group)).toBe('killed');
  });

  it('never thaws what SIGKILL did not reach, and says that it runs on', async () => {
    const group = new FakeGroup();
    group.onKill = () => false;
    await expect(freezeOrKill(group)).rejects.toThrow('neither frozen nor killed');
    expect(group.done).toContain('kill');
    expect(group.done).not.toContain('thaw');
  });

  it('leaves frozen what was empty: a process may be on its way in', async () => {
    const group = new FakeGroup();
    group.empty = true;
    expect(await freezeOrKill(group)).toBe('ended');
    expect(group.done).toEqual(['freeze']);
  });

  it('does not kill what got a lease while it froze', async () => {
    const group = new FakeGroup();
    let isWanted = true;
    group.onFreeze = (times) => {
      isWanted = times < 3;
    };
    expect(await freezeOrKillWhile(group, () => isWanted)).toBe('given up');
    expect(group.done).not.toContain('kill');
  });
});

describe('killUntilGone', () => {
  it('kills again what was born meanwhile', async () => {
    const group = new FakeGroup();
    group.onKill = () => {
      group.empty = group.done.filter((what) => what === 'kill').length === 3;
      return true;
    };
    expect(await killUntilGone(group)).toBe(true);
    expect(group.done).toEqual(['kill', 'thaw', 'kill', 'thaw', 'kill', 'thaw']);
  });

  it('tries again when the kernel cannot be asked for the moment', async () => {
    const group = new FakeGroup();
    let failures = 0;
    group.onKill = () => {
      if (failures++ < 2) throw new Error('EMFILE');
      group.empty = true;
      return true;
    };
    expect(await killUntilGone(group)).toBe(true);
  });
});
