import { randomUUID } from 'node:crypto';
import { readBootId } from '@muster/common/boot';
import { silentLogger } from '@muster/common/log';
import { ensureTestImage } from '../../../../../test/support/images.ts';
import { dockerSocket } from '../../../../../test/support/services.ts';
import { describeDriver } from '../conformance.ts';
import { GuardFixture } from '../process/guardFixture.ts';
import { containerDefaults } from './containerPolicy.ts';
import { createDockerDriver } from './dockerDriver.ts';

/** What containers may do, and a data directory that is nobody's. */
const here = { policy: containerDefaults, dataDir: '/var/lib/muster-of-a-test' };

describeDriver('docker', async () => {
  const socketPath = await dockerSocket();
  const image = await ensureTestImage();
  const agentId = randomUUID();
  const bootId = readBootId();
  const guard = new GuardFixture();
  const log = silentLogger;
  return {
    driver: async () =>
      createDockerDriver({ socketPath, ...here, agentId, bootId, fence: guard.fence(), log }),
    makeLaunch: (launch) => ({ ...launch, image }),
    guard,
    cleanup: () => guard.cleanup(),
  };
});
