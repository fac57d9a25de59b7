import { expect, test } from "vitest";
import { cacheDirectory, configDirectory, homeDirectory, stateDirectory } from "./directories.ts";

test("without XDG variables the directories are under HOME", () => {
  const env = { HOME: "/home/ada" };
  expect(configDirectory(env)).toBe("/home/ada/.config/plimsoll");
  expect(stateDirectory(env)).toBe("/home/ada/.local/state/plimsoll");
  expect(cacheDirectory(env)).toBe("/home/ada/.cache/plimsoll");
});

test("ignores a slash at the end of HOME", () => {
  expect(homeDirectory({ HOME: "/home/ada/" })).toBe("/home/ada");
});

test("XDG variables win over HOME", () => {
  const env = { HOME: "/home/ada", XDG_CONFIG_HOME: "/c", XDG_STATE_HOME: "/s", XDG_CACHE_HOME: "/k" };
  expect(configDirectory(env)).toBe("/c/plimsoll");
  expect(stateDirectory(env)).toBe("/s/plimsoll");
  expect(cacheDirectory(env)).toBe("/k/plimsoll");
});

test("an empty or relative XDG variable is ignored", () => {
  expect(stateDirectory({ HOME: "/home/ada", XDG_STATE_HOME: "" })).toBe("/home/ada/.local/state/plimsoll");
  expect(stateDirectory({ HOME: "/home/ada", XDG_STATE_HOME: "state" })).toBe("/home/ada/.local/state/plimsoll");
});
