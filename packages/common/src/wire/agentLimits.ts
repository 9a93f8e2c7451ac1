/** How much agents say at once, and coordinators take. */

/** Tasks of one heartbeat: more than the largest machines have CPUs. Those that may run come first. */
export const observedMax = 1_024;

/** Tasks of one Hello, ended ones included that the node still keeps. */
export const helloTasksMax = 4_096;

/** Of one message of a session. */
export const sessionBytesMax = 1024 * 1024;
