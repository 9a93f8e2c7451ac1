/** Users, projects and budgets in the state, and what a draft changes of them. */
import type { Project, User } from '@muster/common/people';
import type { Budget } from '../model.ts';
import type { Batch, Snapshot } from '../store/store.ts';
import { applyChanges, removedOf } from './committed.ts';

export interface People {
  /** By name. */
  readonly users: Map<string, User>;
  /** Those that an admin has configured, by name; any other is open. */
  readonly projects: Map<string, Project>;
  /** Budgets of tokens, by id. */
  readonly budgets: Map<string, Budget>;
}

export function peopleOf({
  users,
  projects,
  budgets,
}: Pick<Snapshot, 'users' | 'projects' | 'budgets'>): People {
  return {
    budgets: new Map(budgets.map((budget) => [budget.id, budget])),
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
  /** Changed budgets by id; null: removed. */
  readonly budgets = new Map<string, Budget | null>();
  private readonly base: People;
  private readonly set: SetUndoably;

  constructor(base: People, set: SetUndoably) {
    this.base = base;
    this.set = set;
  }

  /** The number of changes. */
  get size(): number {
    return this.users.size + this.projects.size + this.budgets.size;
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

  budget(id: string): Budget | undefined {
    const drafted = this.budgets.get(id);
    return drafted === undefined ? this.base.budgets.get(id) : (drafted ?? undefined);
  }

  putBudget(budget: Budget): void {
    this.set(this.budgets, budget.id, budget);
  }

  removeBudget(id: string): void {
    this.set(this.budgets, id, null);
  }

  toBatch(): Pick<Batch, 'users' | 'removedUsers' | 'projects' | 'budgets' | 'removedBudgets'> {
    return {
      budgets: [...this.budgets.values()].filter((budget) => budget !== null),
      removedBudgets: removedOf(this.budgets),
      users: [...this.users.values()].filter((user) => user !== null),
      removedUsers: removedOf(this.users),
      projects: [...this.projects.values()],
    };
  }

  /** After the commit. */
  apply(): void {
    applyChanges(this.base.users, this.users);
    applyChanges(this.base.projects, this.projects);
    applyChanges(this.base.budgets, this.budgets);
  }
}
