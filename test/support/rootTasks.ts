/**
 * Flags of an agent of a test. Tests run as one user, often as root, in directories that no other account may enter. So jobs run as
 * their agent does, unless the test is about accounts.
 * @param flags that the test gives the agent
 */
export function rootTasksFlags(flags: readonly string[]): readonly string[] {
  return flags.includes('--account') || flags.includes('--root-tasks') ? [] : ['--root-tasks', 'allow'];
}
