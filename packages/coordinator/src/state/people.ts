/** Users and projects in the state, and what a draft changes of them. */
import type { Project, User } from '@muster/common/people';
import type { Batch, Snapshot } from '../store/store.ts';
import { applyChanges, removedOf } from './committed.ts';

export interface People {
  /** By name. */
  readonly users: Map<string, User>;
  /** Those that an admin has configured, by name; any other is open. */
  readonly projects: Map<string, Project>;
}

export function peopleOf({ users, projects }: Pick<Snapshot, 'users' | 'projects'>): People {
  return {
    users: new Map(users.map((user) => [user.name, user])),
    projects: new Map(projects.map((project) => [project.name, project])),
  };
}

/** Whether only the users of its jobs, and operators, may read the jobs of a project. */
export function isPrivate({ projects }: Pick<People, 'projects'>, project: string): boolean {
  return projects.get(project)?.isPrivate ?? false;
}

/** Changes a map so that a command that throws undoes it. */
export type SetUndoably = <K, V>(map: Map<K, V>, key: K, value: V) => void;

export class DraftedPeople {
  /** Changed users by name; null: removed. */
  readonly users = new Map<string, User | null>();
  /** Changed projects by name. */
  readonly projects = new Map<string, Project>();
  private readonly base: People;
  private readonly set: SetUndoably;

  constructor(base: People, set: SetUndoably) {
    this.base = base;
    this.set = set;
  }

  /** The number of changes. */
  get size(): number {
    return this.users.size + this.projects.size;
  }

  user(name: string): User | undefined {
    const drafted = this.users.get(name);
    return drafted === undefined ? this.base.users.get(name) : (drafted ?? undefined);
  }

  putUser(user: User): void {
    this.set(this.users, user.name, user);
  }

  removeUser(name: string): void {
    this.set(this.users, name, null);
  }

  putProject(project: Project): void {
    this.set(this.projects, project.name, project);
  }

  toBatch(): Pick<Batch, 'users' | 'removedUsers' | 'projects'> {
    return {
      users: [...this.users.values()].filter((user) => user !== null),
      removedUsers: removedOf(this.users),
      projects: [...this.projects.values()],
    };
  }

  /** After the commit. */
  apply(): void {
    applyChanges(this.base.users, this.users);
    applyChanges(this.base.projects, this.projects);
  }
}
