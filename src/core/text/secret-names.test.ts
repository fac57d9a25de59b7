import { expect, test } from "vitest";
import { isSecretName } from "./secret-names.ts";

test("recognises names of files that usually hold secrets, in any folder and letter case", () => {
  const secret = [
    ...[".env", "a/b/.env", ".ENV", ".env.local", ".env.production.local", ".env.", ".env::$DATA", "a\\.env"],
    ...[".envrc", ".env-prod", ".env_ci", ".envrc.local", "prod.env", "docker/shop.env"],
    ...[
      "id_rsa",
      ".ssh/id_ed25519",
      "ID_ECDSA",
      "id_dsa",
      "server.pem",
      "a.KEY",
      "store.p12",
      "a.jks",
      "debug.keystore",
    ],
    ...[".npmrc", ".netrc", "_netrc", ".pypirc", ".git-credentials", ".pgpass", ".htpasswd", ".my.cnf", ".vault-token"],
    ...["credentials", "Credentials.json", ".aws/credentials", "secrets.yaml", "secrets-prod.txt", "secrets.md"],
    ...[".claude/.credentials.json", "terraform.tfstate", "a/terraform.tfstate.backup", "shop.tfstate.1763.backup"],
    ...[
      "kubeconfig",
      "kubeconfig.yaml",
      "prod.kubeconfig",
      ".kube/config",
      "home/.docker/config.json",
      ".codex/auth.json",
    ],
    ...["service-account.json", "shop-serviceAccount-prod.json", "client_secret_12.apps.json"],
    ...["secrets/db_password", "secrets/prod/db.yaml", "deploy/Secrets/key.txt", ".secrets/token", "secrets\\db.json"],
  ];
  for (const name of secret) expect(isSecretName(name), name).toBe(true);
  const plain = [
    ...[".env.example", ".env.local.sample", ".env.TEMPLATE", ".environment", "env", ".env/bin/python"],
    ...[
      ".env-example",
      ".envrc.example",
      "example.env",
      "shop.sample.env",
      "env.d.ts",
      "vite-env.d.ts",
      "environment.env.ts",
    ],
    ...["id_rsa.pub", "keys.ts", "key", "a.pem.md", "secrets.ts", "credentials_test.go", "secrets/readme.md"],
    ...["secrets/README", "src/secrets/index.ts", "secrets/rotate.sh", "secrets/.gitkeep", "secrets/db.yaml.example"],
    ...["README.md", "", "/", ".", "my-credentials.txt", "config", "docker/config.json", "locales/en/auth.json"],
    ...[
      "src/kubeconfig.go",
      "main.tf",
      "terraform.tfvars",
      "keystore.md",
      "my-secrets/notes.txt",
      "service-account.md",
    ],
  ];
  for (const name of plain) expect(isSecretName(name), name).toBe(false);
});
