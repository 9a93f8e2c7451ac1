/** Python that every exported DAG file of Airflow has, and values as Python. Pure. */
import type { PipelineParameter } from '../model.ts';

/** Kubernetes replaces `$(NAME)` in arguments, and makes `$` of `$$`. */
export const podHelper = `

def pod(command):
    return re.sub(r"\\$\\$|\\$(?=\\([A-Za-z_][A-Za-z0-9_.-]*\\))", lambda found: "$" + found.group() + "$" * (len(found.group()) - 1), command)
`;

/** @param root where artifacts are, in Python */
export function helpers(root: string): string {
  return `def text(value, separator=" "):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return separator.join(text(each) for each in value)
    return str(value)


def path(params, run_id, place, name):
    return name if name.startswith("/") else ${root} + "/" + run_id + "/" + place + "/" + name


def parent(name):
    return name.rsplit("/", 1)[0] or "/"


def shell(directories, env, command):
    variables = [name + "=" + value for name, value in env.items()]
    made = "mkdir -p " + shlex.join(directories) + " && " if directories else ""
    return made + "exec env " + shlex.join([*variables, *command])
`;
}

/** JSON's texts are Python's, too. */
export function quoted(text: string): string {
  return JSON.stringify(text);
}

export function literal(value: unknown): string {
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  return JSON.stringify(value);
}

const schemaTypes: Readonly<Record<PipelineParameter['type'], string>> = {
  string: 'string',
  int: 'integer',
  float: 'number',
  bool: 'boolean',
  list: 'array',
};

export function paramText({ type, default: preset }: PipelineParameter): string {
  const given =
    preset === null
      ? ''
      : `${Array.isArray(preset) ? `[${preset.map(literal).join(', ')}]` : literal(preset)}, `;
  return `Param(${given}type=${quoted(schemaTypes[type])})`;
}
