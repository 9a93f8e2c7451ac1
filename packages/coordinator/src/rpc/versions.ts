/** Which agents are too old for this coordinator, or too new. */
import { MusterError } from '@muster/common/errors';
import { musterVersion, skewRefusal } from '@muster/common/version';
import { protocolVersion, protocolVersionMin } from '@muster/common/wire/protocol';

/** @throws {MusterError} `failed_precondition`, with both versions and which of the two to upgrade */
export function refuseOtherVersions(
  node: string,
  hello: { readonly protocolVersion: number; readonly agentVersion: string },
): void {
  const { protocolVersion: theirs, agentVersion } = hello;
  if (theirs < protocolVersionMin || theirs > protocolVersion) {
    const older = theirs > protocolVersion ? 'the coordinator' : 'the agent';
    throw new MusterError(
      'failed_precondition',
      `the agent of ${node} uses protocol ${theirs}, and this coordinator ${protocolVersionMin} and ${protocolVersion}: ` +
        `upgrade ${older}; the agent reconnects automatically then`,
    );
  }
  const skew = skewRefusal(`the agent of ${node}`, agentVersion, musterVersion);
  if (skew !== null)
    throw new MusterError('failed_precondition', `${skew}; the agent reconnects automatically then`);
}
