import { describe, expect, it } from "vitest";
import { ContextError } from "../../errors.ts";
import {
  createHookRegistry,
  type Hook,
  type HookOutcome,
  type LifecycleEvent,
  lifecycleEvents,
} from "./hook-registry.ts";

interface Trace {
  readonly ran: string[];
}

const named =
  (name: string, outcome: HookOutcome = "continue"): Hook<Trace> =>
  ({ ran }, event) => {
    ran.push(`${name} ${event}`);
    return outcome;
  };

describe("a hook registry", () => {
  it("runs the hooks of an event in order, each when the one before is done", async () => {
    const registry = createHookRegistry<Trace>();
    registry.register("before_tool", async (context, event) => {
      await new Promise((resolve) => setTimeout(resolve, 5));
      return named("slow")(context, event);
    });
    registry.register("before_tool", named("fast"));
    registry.register("after_tool", named("other"));
    const trace: Trace = { ran: [] };
    await expect(registry.run("before_tool", trace)).resolves.toBe("continue");
    expect(trace.ran).toEqual(["slow before_tool", "fast before_tool"]);
  });

  it("knows every event, and runs nothing where nothing is registered", async () => {
    const registry = createHookRegistry<Trace>();
    for (const event of lifecycleEvents) {
      const trace: Trace = { ran: [] };
      expect(await registry.run(event, trace)).toBe("continue");
      registry.register(event, named("hook"));
      await registry.run(event, trace);
      expect(trace.ran).toEqual([`hook ${event}`]);
    }
  });

  it("ends at the first hook that says stop", async () => {
    const registry = createHookRegistry<Trace>();
    for (const hook of [named("a"), named("b", "stop"), named("c")]) registry.register("session_start", hook);
    const trace: Trace = { ran: [] };
    expect(await registry.run("session_start", trace)).toBe("stop");
    expect(trace.ran).toEqual(["a session_start", "b session_start"]);
  });

  it("ends with the error of a hook that throws, now or later", async () => {
    const error = new Error("disk full");
    const failing: readonly Hook<Trace>[] = [
      () => {
        throw error;
      },
      () => Promise.reject(error),
    ];
    for (const hook of failing) {
      const registry = createHookRegistry<Trace>();
      registry.register("session_end", hook);
      registry.register("session_end", named("after"));
      const trace: Trace = { ran: [] };
      await expect(registry.run("session_end", trace)).rejects.toBe(error);
      expect(trace.ran).toEqual([]);
    }
  });

  it("leaves a run alone in which a hook registers another one", async () => {
    const registry = createHookRegistry<Trace>();
    registry.register("before_inference", (context, event) => {
      registry.register("before_inference", named("late"));
      return named("first")(context, event);
    });
    const trace: Trace = { ran: [] };
    await registry.run("before_inference", trace);
    expect(trace.ran).toEqual(["first before_inference"]);
    await registry.run("before_inference", trace);
    expect(trace.ran.slice(1)).toEqual(["first before_inference", "late before_inference"]);
  });

  it("goes on behind a hook that says nothing", async () => {
    const registry = createHookRegistry<Trace>();
    registry.register("before_tool", ({ ran }) => {
      ran.push("quiet");
    });
    registry.register("before_tool", async ({ ran }) => {
      await Promise.resolve();
      ran.push("quiet later");
    });
    registry.register("before_tool", named("last", "stop"));
    const trace: Trace = { ran: [] };
    expect(await registry.run("before_tool", trace)).toBe("stop");
    expect(trace.ran).toEqual(["quiet", "quiet later", "last before_tool"]);
  });

  it("refuses an unknown event, what is no function, and an answer that it does not know", async () => {
    const registry = createHookRegistry<Trace>();
    const unknown = "before_lunch" as LifecycleEvent;
    expect(() => registry.register(unknown, named("a"))).toThrow('unknown lifecycle event "before_lunch"');
    await expect(registry.run(unknown, { ran: [] })).rejects.toThrow(ContextError);
    expect(() => registry.register("before_tool", {} as Hook<Trace>)).toThrow(
      "a hook must be a function, not a object",
    );
    registry.register("before_tool", (() => false) as unknown as Hook<Trace>);
    await expect(registry.run("before_tool", { ran: [] })).rejects.toThrow(
      "a hook for before_tool returned false",
    );
  });
});
