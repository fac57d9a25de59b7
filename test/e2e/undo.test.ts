import { expect, test } from "vitest";
import { createSandbox } from "./run-plimsoll.ts";

test("the help is as pinned, and without a record there is nothing to take back", async () => {
  const sandbox = createSandbox();
  const help = await sandbox.call(["undo", "--help"]);
  expect(help).toMatchObject({ code: 0, stderr: "" });
  await expect(help.stdout).toMatchFileSnapshot("golden/help-undo.txt");
  const nothing = { code: 0, stdout: "There is nothing to take back in this project.\n" };
  expect(await sandbox.run(["undo"])).toMatchObject(nothing);
  expect(await sandbox.call(["undo", "--list"])).toMatchObject(nothing);
  expect(await sandbox.call(["undo", "--list", "--force"])).toMatchObject({ code: 2 });
  sandbox.remove();
});
