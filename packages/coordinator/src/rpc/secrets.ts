/** The calls about secrets: of people, who store them, and of agents, which fetch them for their tasks. */
import { MusterError } from '@muster/common/errors';
import type { AgentHubHandlers } from '@muster/common/gen/muster/v1/AgentHub';
import type { ReadSecretsRequest__Output } from '@muster/common/gen/muster/v1/ReadSecretsRequest';
import { isProjectName, secretNames } from '@muster/common/secrets';
import { taskRefFromWire } from '@muster/common/wire/codec';
import { mayUseProject, requireProject } from '../auth/access.ts';
import type { Identity } from '../caller.ts';
import type { SecretVault } from '../secrets/vault.ts';
import { heldTask } from '../state/heldTasks.ts';
import type { ClusterState } from '../state/state.ts';
import type { StoredSecret } from '../store/secrets.ts';
import { taken } from './bounds/bounded.ts';
import { type MusterCalls, unary, unaryHandler } from './calls.ts';

export interface SecretCallParts {
  readonly state: ClusterState;
  readonly vault: SecretVault;
}

type SecretCalls = Pick<MusterCalls, 'SetSecret' | 'ListSecrets' | 'RemoveSecret' | 'RotateSecretKey'>;

export function secretCalls({ vault }: SecretCallParts): SecretCalls {
  return {
    SetSecret: unary(async ({ project, name, value }, caller) => {
      requireOwnProject(caller, project);
      return shown(await vault.set(caller, project, name, value));
    }),
    ListSecrets: unary(async ({ project }, caller) => {
      if (project !== undefined) requireOwnProject(caller, project);
      const secrets = await vault.list(project ?? null);
      return { secrets: secrets.filter((each) => mayUseProject(caller, each.project)).map(shown) };
    }),
    RemoveSecret: unary(async ({ project, name }, caller) => {
      requireOwnProject(caller, project);
      return shown(await vault.remove(caller, project, name));
    }),
    RotateSecretKey: unary(async (_request, caller) => ({ secrets: await vault.rotateKey(caller) })),
  };
}

/** @throws {MusterError} `invalid`; `permission_denied` unless the caller may submit jobs to this project */
function requireOwnProject(caller: Identity, project: string): void {
  if (!isProjectName(project)) throw new MusterError('invalid', `"${project}" is not the name of a project`);
  requireProject(caller, project);
}

/** Everything but the value. */
function shown({ project, name, createdAtMs, changedAtMs, changedBy }: StoredSecret) {
  return { project, name, createdAtMs, changedAtMs, changedBy };
}

/** What agents fetch for their tasks. */
export function taskSecretCalls({ state, vault }: SecretCallParts): Pick<AgentHubHandlers, 'ReadSecrets'> {
  return {
    /** Only for the node that the task is assigned to, and while it has not ended. */
    ReadSecrets: unaryHandler(
      unary(async (request: ReadSecretsRequest__Output, caller) => {
        const ref = taskRefFromWire(taken(request).task);
        const job = ref === null ? undefined : state.jobs.get(ref.jobId);
        const task = ref === null || caller.kind !== 'agent' ? undefined : heldTask(job, ref, caller.node);
        if (job === undefined || task === undefined || task.state === 'ended')
          throw new MusterError('not_found', 'no such task is assigned to this node, so it gets no secrets');
        const values = await vault.read(job.spec.project, secretNames(job.spec));
        return { secrets: values.map(({ name, value }) => ({ name, value: Buffer.from(value) })) };
      }),
    ),
  };
}
