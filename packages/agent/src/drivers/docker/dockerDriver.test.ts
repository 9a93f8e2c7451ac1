import { randomUUID } from 'node:crypto';
import { silentLogger } from '@muster/common/log';
import { ensureTestImage } from '../../../../../test/support/images.ts';
import { dockerSocket } from '../../../../../test/support/services.ts';
import { readBootId } from '../../probes/boot.ts';
import { describeDriver } from '../conformance.ts';
import { GuardFixture } from '../process/guardFixture.ts';
import { createDockerDriver } from './dockerDriver.ts';

describeDriver('docker', async () => {
  const socketPath = await dockerSocket();
  const image = await ensureTestImage();
  const agentId = randomUUID();
  const bootId = readBootId();
  const guard = new GuardFixture();
  const log = silentLogger;
  return {
    driver: async () => createDockerDriver({ socketPath, agentId, bootId, fence: guard.fence(), log }),
    makeLaunch: (launch) => ({ ...launch, image }),
    guard,
    cleanup: () => guard.cleanup(),
  };
});
