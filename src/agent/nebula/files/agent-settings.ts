/** What the files of a nebula say of agents: which command, with what, where, and what it may do. */
export interface AgentSetting {
  /** Absolute. */
  readonly file: string;
  readonly line: number;
  readonly key: string;
  readonly value: unknown;
}

export interface SettingFile {
  /** Absolute. */
  readonly file: string;
  /** The table that the keys stand in. */
  readonly prefix?: readonly string[] | undefined;
  lineOf(path: readonly PropertyKey[]): number;
}

/** Keys of phases and of tables of nebula.toml. Some are of later versions: a key is in this list before it is in the schema. */
const agentKeys = ["model", "agent", "command", "args", "allow", "working_dir"];

export function agentSettings(table: object, { file, prefix = [], lineOf }: SettingFile): AgentSetting[] {
  return Object.entries(table).flatMap(([key, value]) => {
    const path = [...prefix, key];
    return agentKeys.includes(key) ? { file, line: lineOf(path), key: path.join("."), value } : [];
  });
}
