import { randomUUID } from 'node:crypto';
import { silentLogger } from '@muster/common/log';
import { ensureTestImage } from '../../../../../test/support/images.ts';
import { dockerSocket } from '../../../../../test/support/services.ts';
import { describeDriver } from '../conformance.ts';
import { createDockerDriver } from './dockerDriver.ts';

describeDriver('docker', async () => {
  const socketPath = await dockerSocket();
  const image = await ensureTestImage();
  const agentId = randomUUID();
  return {
    driver: async () => createDockerDriver({ socketPath, agentId, bootId: 'this boot', log: silentLogger }),
    makeLaunch: (launch) => ({ ...launch, image }),
    cleanup: async () => {},
  };
});
