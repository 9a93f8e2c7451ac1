import { describeStore } from '../contract.ts';
import { Memory, MemoryStore } from './memoryStore.ts';

describeStore('MemoryStore', async () => {
  const memory = new Memory('c0ffee');
  return { store: new MemoryStore(memory), reopen: async () => new MemoryStore(memory) };
});
