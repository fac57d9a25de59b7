/** A nebula that runs as it is and shows the keys that most people need. */
export function starterFiles(name: string): Readonly<Record<string, string>> {
  return {
    "nebula.toml": `[nebula]
name = ${JSON.stringify(name)}

[execution]
max_workers = 1            # how many phases run at the same time
max_context_tokens = 10000 # what a phase is told of the project and of other phases

[context]
goals = ["What the whole plan should achieve"]
constraints = ["A rule for every phase"]
`,
    "first.md": `+++
id = "first"
title = "Say what this phase makes"
scope = ["src/first/**"]
+++

Describe the task: what to make, where, and how to see that it works.
`,
    "second.md": `+++
id = "second"
title = "Build on the first phase"
depends_on = ["first"]
scope = ["src/second/**"]
gate = "review" # a person looks at the changes before they count
+++

This phase reads the answer of the first one. Describe what it adds.
`,
  };
}
