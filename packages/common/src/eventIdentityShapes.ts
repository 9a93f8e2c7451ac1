/** What the data of events about identities are made of. Plain data. */
import { nullable, objectOf, textShape } from './jsonShapes.ts';

/** One of two machines with the same identity. */
export const identityData = objectOf({
  hostName: nullable(textShape('gpu-host-7')),
  address: nullable(textShape('10.0.0.7')),
  bootId: textShape('a4c2dedd-444d-418f-91f1-b1597c451977'),
});
