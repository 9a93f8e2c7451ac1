/** Of events about the cluster as a whole. */
export const clusterSubject = 'cluster';
