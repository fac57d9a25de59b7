# A project with a setting of each kind that needs trust.
git init --quiet
mkdir -p ../packs-repo .plimsoll/packs/web plan
printf 'tools: [claude-code]\ncompany: { source: ../packs-repo }\n' >.plimsoll/config.yaml
printf 'id: web\n' >.plimsoll/packs/web/pack.yaml
printf '## Releases\n\n<!-- sync:fetch url="https://shop.example/releases" -->\n' >.plimsoll/packs/web/context.md
cat >plan/nebula.toml <<'END'
[nebula]
name = "checkout"

[context]
working_dir = "../packs-repo"
END
cat >plan/api.md <<'END'
+++
id = "api"
title = "API"
model = "opus"
+++
Add the endpoint.
END
