/** The scripts and styles of the pages, as text. This file only declares them: the build and vitest put in what
 *  scripts/bundle-pages.mjs makes of `browser/`. */
export const pageAssets: Readonly<Record<"bill" | "replay", { readonly script: string; readonly style: string }>> = {
  bill: { script: "", style: "" },
  replay: { script: "", style: "" },
};
