type Settings = Readonly<Record<string, unknown>>;

/**
 * One line for each setting; what is within is JSON, which YAML has too.
 * @param opened settings that are mappings, whose members get a line each
 */
export function yamlText(settings: Settings, opened: readonly string[]): string {
  const lines = Object.entries(settings).flatMap(([key, value]) =>
    opened.includes(key)
      ? [
          `${key}:`,
          ...Object.entries(value as Settings).map(([name, each]) => `  ${name}: ${JSON.stringify(each)}`),
        ]
      : [`${key}: ${JSON.stringify(value)}`],
  );
  return `${lines.join('\n')}\n`;
}
