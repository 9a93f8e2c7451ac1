/**
 * What agents and coordinators send each other in a session. A number is a promise: a change that the other side has to
 * know of raises it. Agents and coordinators are upgraded one after the other, so that each takes the number before its
 * own as well.
 *
 * 2: tasks run on leases. 3: agents keep proofs of terms and tasks, and send them again.
 */
export const protocolVersion = 3;

/** Everything works with a peer of this version, except for what later versions have added. */
export const protocolVersionMin = protocolVersion - 1;

/**
 * Heartbeats that may go without an answer, or not arrive, one after the other. The agent then dials again, and the coordinator
 * takes the node for silent. One lost or late message must do neither. Both sides count the same number, so that neither gives up
 * long before the other.
 */
export const missedHeartbeatsMax = 3;
