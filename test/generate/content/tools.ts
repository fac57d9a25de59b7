/** The tools of generated agents: what a call of each looks like and what comes back. */
import type { Project } from "./project.ts";
import type { Random, Size } from "./random.ts";
import { writeLines, writeName, writePath, writeText } from "./write-text.ts";

export type ToolName =
  | "read_file"
  | "search_files"
  | "run_command"
  | "edit_file"
  | "write_file"
  | "delegate"
  | "fetch_page"
  | "look_up";

export interface ToolUse {
  readonly input: Readonly<Record<string, unknown>>;
  readonly result: string;
}

/** `size`: tokens of the result, or of what is written. */
export function useTool(name: ToolName, size: Size, scene: { random: Random; project: Project }): ToolUse {
  return writers[name](scene.random, scene.project, scene.random.size(size));
}

type ToolWriter = (random: Random, project: Project, tokens: number) => ToolUse;

const writers: Readonly<Record<ToolName, ToolWriter>> = {
  // The project's own sizes rule here: a file is as long as it is.
  read_file(_random, project) {
    const { path, offset, text } = project.read();
    const range = offset === undefined ? {} : { offset, limit: text.split("\n").length };
    return { input: { file_path: path, ...range }, result: text };
  },
  search_files(random, project, tokens) {
    const input = { pattern: `${writeName(random)}\\(`, path: "src", output_mode: "content" };
    return { input, result: project.find(Math.ceil(tokens / 28)).join("\n") };
  },
  run_command(random, _project, tokens) {
    const command = `npm test -- ${writePath(random)} && git log --oneline -${random.whole(2, 40)}`;
    const input = { command, description: `Check ${writeName(random)}` };
    return { input, result: writeText(random, "log", tokens) };
  },
  edit_file(_random, project, tokens) {
    const { path, before, after, text } = project.edit(Math.ceil(tokens / 12));
    const result = `Changed ${path}. The lines are now:\n${text}`;
    return { input: { file_path: path, old_string: before, new_string: after }, result };
  },
  write_file(random, _project, tokens) {
    const file_path = writePath(random);
    return {
      input: { file_path, content: writeText(random, "code", tokens) },
      result: `Wrote ${file_path}.`,
    };
  },
  delegate(random, _project, tokens) {
    return { input: { prompt: writeText(random, "prose", 120) }, result: writeText(random, "prose", tokens) };
  },
  fetch_page(random, _project, tokens) {
    const url = `https://docs.example.com/${writeName(random)}`;
    return {
      input: { url, prompt: writeText(random, "prose", 20) },
      result: writeText(random, "prose", tokens),
    };
  },
  look_up(random, _project, tokens) {
    const rows = writeLines(random, "log", tokens).map((line) => ({ [writeName(random)]: line }));
    return {
      input: { id: writeName(random), reason: writeText(random, "prose", 20) },
      result: JSON.stringify(rows),
    };
  },
};

/** Definitions in Anthropic's shape. */
export function toolDefinition(name: ToolName): object {
  const required = parameters[name];
  const properties = Object.fromEntries(required.map((key) => [key, { type: "string", description: key }]));
  const description = `Calls ${name.replaceAll("_", " ")} with ${required.join(", ")}.`;
  return { name, description, input_schema: { type: "object", properties, required } };
}

const parameters: Readonly<Record<ToolName, readonly string[]>> = {
  read_file: ["file_path"],
  search_files: ["pattern", "path"],
  run_command: ["command"],
  edit_file: ["file_path", "old_string", "new_string"],
  write_file: ["file_path", "content"],
  delegate: ["prompt"],
  fetch_page: ["url"],
  look_up: ["id"],
};
