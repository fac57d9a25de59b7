/** The block that shows an agent how to report: what stands between its fences. */
export const fabricExample = `entanglements:
  - { package: name, kind: function, signature: "what others may call", file: path }
discoveries:
  - { kind: what sort, detail: "what others must know", affects: phase id }
notes:
  - { kind: decision, text: "what was decided, and why" }
`;
