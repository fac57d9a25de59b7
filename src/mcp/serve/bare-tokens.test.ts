import { expect, test } from "vitest";
import type { Delivered } from "../../session/index.ts";
import { createBareTokens } from "./bare-tokens.ts";

function page(token: string | undefined): Delivered {
  const data = { returned: 1, offset: 0, truncated: token !== undefined };
  const envelope = {
    status: "success",
    data: token === undefined ? data : { ...data, continuation_token: token },
  } as const;
  return { envelope, text: "", tokens: 0, id: "r1" };
}

test("a whole token means itself", () => {
  const { resolve } = createBareTokens();
  for (const token of ["r1:offset:10", "r1:offset:0+5", "r1:fields+0", "nonsense", "offset:", "offset:1x"])
    expect(resolve(token)).toBe(token);
});

test("a bare offset means the only page that went on there", () => {
  const { given, resolve } = createBareTokens();
  for (const token of ["r1:offset:10", "r2:offset:20", "r2:offset:10+5", "r3:fields+0", undefined])
    given(page(token));
  expect(resolve("offset:10")).toBe("r1:offset:10");
  expect(resolve("offset:20")).toBe("r2:offset:20");
  given(page("r1:offset:10"));
  expect(resolve("offset:10")).toBe("r1:offset:10");
});

test("where several pages go on at one offset, or none, it is an error, however long ago", () => {
  const { given, resolve } = createBareTokens();
  given(page("r1:offset:10"));
  for (let number = 2; number < 100; number += 1) given(page(`r${number}:offset:${number + 10}`));
  given(page("r100:offset:10"));
  expect(resolve("offset:10")).toMatchObject({
    code: "ambiguous_token",
    message: "2 results go on with offset:10",
    hint: expect.stringContaining("r100:offset:10"),
  });
  expect(resolve("offset:7")).toMatchObject({ code: "invalid_token" });
});
