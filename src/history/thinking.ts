import { decideParts, drop } from "./decide-parts.ts";
import type { Draft } from "./draft.ts";

/** Models that tie a block of thinking to everything before it: once that changed, the block is refused or dropped (Anthropic, 2026-11). */
const binding = /opus-5[-.]5|(?:fable|mythos)-5[-.]1/;

export function bindsThinking(model: string | undefined): boolean {
  return model !== undefined && binding.test(model.toLowerCase());
}

/** Drops all thinking from the draft's first change on: on such models it is refused once anything before it has changed. */
export function dropBoundThinking(draft: Draft): void {
  for (let index = draft.firstChanged; index < draft.messages.length; index++) {
    decideParts(draft, index, (part) =>
      part.kind === "thinking" && part.isBound !== true ? drop : undefined,
    );
  }
}
