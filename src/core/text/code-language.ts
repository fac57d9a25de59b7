/** Languages by the ending of a file's name. Markup, styles and data are not code. */
const languages: ReadonlyMap<string, string> = new Map(
  Object.entries({
    TypeScript: "ts tsx mts cts",
    JavaScript: "js jsx mjs cjs",
    Python: "py pyi",
    Go: "go",
    Rust: "rs",
    Java: "java",
    Kotlin: "kt kts",
    Scala: "scala",
    PHP: "php",
    Ruby: "rb",
    "C#": "cs",
    "F#": "fs",
    "Visual Basic": "vb",
    Elixir: "ex exs",
    Erlang: "erl",
    Swift: "swift",
    "Objective-C": "m mm",
    Dart: "dart",
    C: "c h",
    "C++": "cc cpp cxx hpp hh",
    Zig: "zig",
    Haskell: "hs",
    OCaml: "ml mli",
    Clojure: "clj cljs cljc",
    Lua: "lua",
    Julia: "jl",
    R: "r",
    Perl: "pl pm",
    Vue: "vue",
    Svelte: "svelte",
    Shell: "sh bash zsh",
  }).flatMap(([name, endings]) => endings.split(" ").map((ending) => [ending, name])),
);

/** Returns the language of a file by its name, or undefined if it is not code. */
export function codeLanguage(path: string): string | undefined {
  const dot = path.lastIndexOf(".");
  return dot <= path.lastIndexOf("/") + 1 ? undefined : languages.get(path.slice(dot + 1).toLowerCase());
}
