/** Checkpoints that PyTorch itself has saved. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pythonWithTorch } from '../../../../test/support/services.ts';

/**
 * `new.pt`, `old.pt`, `last.ckpt`; `checkpoint-500/` of two shards with the trainer's files; `step-100/` as of
 * `torch.distributed.checkpoint`, where rank 1 had nothing to save, with the `.metadata` that its newer versions write.
 */
const program = `
import dataclasses, json, os, pickle, sys, torch
root = sys.argv[1]
os.chdir(root)
torch.manual_seed(0)
state = {'model': {'w': torch.randn(300, 300), 'b': torch.arange(10)}, 'step': 7}
torch.save(state, 'new.pt')
torch.save(state, 'last.ckpt')
torch.save(state, 'old.pt', _use_new_zipfile_serialization=False)
os.makedirs('checkpoint-500')
weights = {}
for shard in (1, 2):
    name = f'pytorch_model-0000{shard}-of-00002.bin'
    torch.save({f'layer.{shard}': torch.randn(64, 64)}, f'checkpoint-500/{name}')
    weights[f'layer.{shard}'] = name
torch.save(state, 'checkpoint-500/optimizer.pt')
json.dump({'metadata': {}, 'weight_map': weights}, open('checkpoint-500/pytorch_model.bin.index.json', 'w'))
json.dump({'global_step': 500}, open('checkpoint-500/trainer_state.json', 'w'))
open('checkpoint-500/merges.txt', 'w').write('a b')
os.makedirs('step-100')
@dataclasses.dataclass
class _StorageInfo:
    relative_path: str
    offset: int
    length: int
@dataclasses.dataclass
class Metadata:
    state_dict_metadata: dict
    planner_data: object
    storage_data: dict
metadata = Metadata({}, {'layers': ('model', 'w')}, {})
for rank in (0, 2):
    name = f'__{rank}_0.distcp'
    with open(f'step-100/{name}', 'wb') as file:
        for index in range(3):
            offset = file.tell()
            torch.save(torch.randn(50, 50), file)
            fqn = f'layers.{rank}.{index}'
            metadata.state_dict_metadata[fqn] = (torch.Size([50, 50]), [(torch.Size([0]), torch.float32)])
            metadata.storage_data[fqn] = _StorageInfo(name, offset, file.tell() - offset)
open('step-100/__1_0.distcp', 'wb').close()
pickle.dump(metadata, open('step-100/.metadata', 'wb'))
`;

/** @param root an empty directory */
export async function saveByTorch(root: string): Promise<void> {
  const script = join(root, 'save.py');
  writeFileSync(script, program);
  execFileSync(await pythonWithTorch(), [script, root], { stdio: ['ignore', 'ignore', 'inherit'] });
}
