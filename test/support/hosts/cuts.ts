/**
 * Bad networks, made by the packet filter of a host's own network: whatever else is wrong with the host, they hold. What
 * a cut does to outgoing packets looks to the host as if a switch did it.
 */
import type { Host } from './host.ts';

export type Cut =
  | 'both ways'
  | 'nothing gets in'
  | 'nothing gets out'
  | 'opens no connections'
  | 'resets'
  | '30 % loss';

const drop = ['-j', 'DROP'];
const dropSome = ['-m', 'statistic', '--mode', 'random', '--probability', '0.3', ...drop];
/** Who sends something gets a reset, on both sides; that reset itself goes through. */
const reset = ['-p', 'tcp', '!', '--tcp-flags', 'RST', 'RST', '-j', 'REJECT', '--reject-with', 'tcp-reset'];

const rules: Readonly<Record<Cut, readonly (readonly string[])[]>> = {
  'both ways': [
    ['INPUT', ...drop],
    ['OUTPUT', ...drop],
  ],
  'nothing gets in': [['INPUT', ...drop]],
  'nothing gets out': [['OUTPUT', ...drop]],
  'opens no connections': [['OUTPUT', '-p', 'tcp', '--syn', ...drop]],
  resets: [
    ['INPUT', ...reset],
    ['OUTPUT', ...reset],
  ],
  '30 % loss': [
    ['INPUT', ...dropSome],
    ['OUTPUT', ...dropSome],
  ],
};

/**
 * @param peer only what goes to and comes from this address; default: everything
 * @returns what takes the cut away again
 */
export async function cutOff(host: Host, cut: Cut, peer: string | null = null): Promise<() => Promise<void>> {
  const own = rules[cut].map(([chain = '', ...rest]) => [
    chain,
    // The host's own processes can still reach each other.
    ...(chain === 'INPUT' ? ['-i', 'eth0'] : ['-o', 'eth0']),
    ...(peer === null ? [] : [chain === 'INPUT' ? '--source' : '--destination', peer]),
    ...rest,
  ]);
  const change = async (how: '--append' | '--delete') => {
    for (const rule of own) await host.onNetwork(['iptables', '--wait', how, ...rule]);
  };
  const { initPid } = host.machine;
  await change('--append');
  // What has lost its power since then has lost its rules, too.
  return async () => {
    if (host.machine.initPid === initPid) await change('--delete');
  };
}
