/** Sessions like those of real agents, for tests and benchmarks: nothing in them is anybody's, and a seed always gives the same. */
import { ContextError } from "../../src/core/errors.ts";
import { createProject, type Project } from "./content/project.ts";
import { createRandom, type Random } from "./content/random.ts";
import { toolDefinition, useTool } from "./content/tools.ts";
import { writeSealed, writeText } from "./content/write-text.ts";
import { type Profile, type ProfileName, profiles } from "./profiles.ts";
import { applyQuirks, type Quirk } from "./quirks.ts";
import type { CallBlock, ResultBlock, SessionBlock, SessionMessage, ThinkingBlock } from "./session-message.ts";

export interface SessionOptions {
  readonly seed: number;
  /** Turns of the assistant, from 1. */
  readonly turns: number;
  /** "coding" unless told. */
  readonly profile?: ProfileName | undefined;
  /** What recordings have and requests must not; none unless told. */
  readonly quirks?: readonly Quirk[] | undefined;
}

export interface GeneratedSession {
  readonly model: string;
  /** In Anthropic's shape; begins with the person (a system prompt before it in some profiles), ends with the assistant. */
  readonly messages: readonly SessionMessage[];
  /** For each message its time, in ms since 1970. */
  readonly times: readonly number[];
  readonly tools: readonly object[];
}

interface Scene {
  readonly random: Random;
  readonly profile: Profile;
  readonly project: Project;
  readonly messages: SessionMessage[];
  readonly times: number[];
  nowMs: number;
  calls: number;
  readonly seed: number;
}

export function generateSession(options: SessionOptions): GeneratedSession {
  const { seed, turns, quirks = [] } = options;
  checkWhole("seed", seed, Number.MIN_SAFE_INTEGER);
  checkWhole("turns", turns, 1);
  const profile = profileNamed(options.profile ?? "coding");
  const scene = createScene(seed, profile);
  if (profile.systemTokens > 0) say(scene, "system", profile.systemTokens);
  say(scene, "user", scene.random.size(profile.firstPrompt));
  for (let turn = 1; turn <= turns; turn++) {
    if (turn === turns || scene.random.chance(1 / profile.turnsPerPrompt)) endExchange(scene, turn === turns);
    else takeTurn(scene);
  }
  const { messages, times } = applyQuirks(scene, quirks, scene.random);
  return {
    model: profile.model,
    messages,
    times,
    tools: profile.tools.map(({ name }) => toolDefinition(name)),
  };
}

function profileNamed(name: ProfileName): Profile {
  if (Object.hasOwn(profiles, name)) return profiles[name];
  const hint = `Profiles are ${Object.keys(profiles).join(", ")}.`;
  throw new ContextError("invalid_argument", `no profile "${name}"`, { hint });
}

function createScene(seed: number, profile: Profile): Scene {
  const random = createRandom(seed);
  const project = createProject(random, profile.project);
  const nowMs = Date.UTC(2026, 0, 5, 9);
  return { random, profile, project, messages: [], times: [], nowMs, calls: 0, seed };
}

/** The assistant reports; then, unless that was all, the person asks for more. */
function endExchange(scene: Scene, isLast: boolean): void {
  const { random, profile } = scene;
  const text = writeText(random, "prose", random.size(profile.answer));
  add(scene, { role: "assistant", content: [...think(scene), { type: "text", text }] }, thinkingMs(random));
  if (isLast) return;
  // People answer within a minute or two, sometimes after the cache's five minutes or an hour.
  const pauseMs = 1000 * random.size({ median: 75, spread: 1.5, most: 20_000 });
  scene.nowMs += pauseMs;
  say(scene, "user", random.size(profile.prompt));
}

function takeTurn(scene: Scene): void {
  const { random, profile } = scene;
  const blocks: SessionBlock[] = think(scene);
  if (random.chance(profile.remark.share)) {
    blocks.push({ type: "text", text: writeText(random, "prose", random.size(profile.remark.size)) });
  }
  const { share, most } = profile.parallel;
  const uses = Array.from({ length: random.chance(share) ? random.whole(2, most) : 1 }, () => use(scene));
  add(scene, { role: "assistant", content: [...blocks, ...uses.map(({ call }) => call)] }, thinkingMs(random));
  const toolMs = 100 * random.size({ median: 5, spread: 1.5, most: 3_000 });
  add(scene, { role: "user", content: uses.map(({ result }) => result) }, toolMs);
}

function think({ random, profile: { thinking } }: Scene): SessionBlock[] {
  if (!random.chance(thinking.share)) return [];
  const tokens = random.size(thinking.size);
  if (thinking.kind === "sealed") return [{ type: "redacted_thinking", data: writeSealed(random, 4 * tokens) }];
  return [signed(random, writeText(random, "prose", tokens))];
}

/** Signatures grow with what they seal. */
function signed(random: Random, thinking: string): ThinkingBlock {
  return {
    type: "thinking",
    thinking,
    signature: writeSealed(random, 220 + Math.round(1.4 * thinking.length)),
  };
}

function use(scene: Scene): { call: CallBlock; result: ResultBlock } {
  const { random, profile } = scene;
  const tool = random.pickWeighted(profile.tools.map((each) => [each, each.weight] as const));
  const { input, result } = useTool(tool.name, tool.size, scene);
  const id = `toolu_${scene.seed}_${++scene.calls}`;
  const call: CallBlock = { type: "tool_use", id, name: tool.name, input };
  if (!random.chance(profile.errorShare))
    return { call, result: { type: "tool_result", tool_use_id: id, content: result } };
  const content = `Error: ${writeText(random, "log", 30)}`;
  return { call, result: { type: "tool_result", tool_use_id: id, content, is_error: true } };
}

function say(scene: Scene, role: "system" | "user", tokens: number): void {
  add(scene, { role, content: [{ type: "text", text: writeText(scene.random, "prose", tokens) }] }, 0);
}

function add(scene: Scene, message: SessionMessage, tookMs: number): void {
  scene.nowMs += tookMs;
  scene.messages.push(message);
  scene.times.push(scene.nowMs);
}

function thinkingMs(random: Random): number {
  return 1000 * random.size({ median: 6, spread: 0.7, most: 120 });
}

function checkWhole(name: string, value: number, least: number): void {
  if (Number.isSafeInteger(value) && value >= least) return;
  throw new ContextError("invalid_argument", `${name} is ${value}`, {
    hint: `Use a whole number from ${least}.`,
  });
}
