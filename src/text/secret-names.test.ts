import { expect, test } from "vitest";
import { isSecretName } from "./secret-names.ts";

test("recognises names of files that usually hold secrets, in any folder and letter case", () => {
  const secret = [
    ...[".env", "a/b/.env", ".ENV", ".env.local", ".env.production.local", ".env.", ".env::$DATA", "a\\.env"],
    ...["id_rsa", ".ssh/id_ed25519", "ID_ECDSA", "id_dsa", "server.pem", "a.KEY", "store.p12"],
    ...[".npmrc", ".netrc", "_netrc", ".pypirc", ".git-credentials"],
    ...["credentials", "Credentials.json", ".aws/credentials", "secrets.yaml", "secrets-prod.txt", "secrets.md"],
  ];
  for (const name of secret) expect(isSecretName(name), name).toBe(true);
  const plain = [
    ...[".env.example", ".env.local.sample", ".env.TEMPLATE", ".environment", ".envrc", "env", ".env/bin/python"],
    ...["id_rsa.pub", "keys.ts", "key", "a.pem.md", "secrets.ts", "credentials_test.go", "secrets/readme.md"],
    ...["README.md", "", "/", ".", "my-credentials.txt"],
  ];
  for (const name of plain) expect(isSecretName(name), name).toBe(false);
});
