import { expect, test } from "vitest";
import { type ConvertOptions, convertHtml } from "./convert-html.ts";

const markdown = (html: string, options: Partial<ConvertOptions> = {}) =>
  convertHtml(html, { format: "markdown", baseUrl: "https://a.example/docs/page", ...options }).text;

const page = `<!DOCTYPE html><html><head><title>T</title><style>p{}</style><base href="/guide/"></head>
<body><nav><a href="/">Home</a></nav>
<main id="top" class="content wide"><h1>Release <em>1.2</em> <a class="anchor" href="#r">#</a></h1>
<p>Fast &amp; small&nbsp;tool, see <a href="start?x=(1)">how  to
start</a>.<br>Next<script>alert("<p>no</p>")</script> line.
<ul><li>one<li><p>two</p><ol start=3><li>three</li><li>four<br>more</li></ol></li></ul>
<pre><code class="language-ts">if (a &lt; b) {
  run();

}
</code></pre>
<table><caption>Limits</caption><thead><tr><th>Name<th>Value</tr></thead><tbody><tr><td>a|b</td><td><code>x</code> <b> y </b></td></tr></tbody></table>
<blockquote><p>Quoted</p><p>twice</p></blockquote><hr><dl><dt>Term<dd>Meaning</dl></main></body></html>`;

test("a page becomes markdown with absolute links", () => {
  expect(markdown(page, { selector: "main.content" })).toBe(`# Release *1.2*

Fast & small tool, see [how to start](https://a.example/guide/start?x=%281%29).
Next line.

- one
- two
  3. three
  4. four
     more

\`\`\`ts
if (a < b) {
  run();

}
\`\`\`

Limits

| Name | Value |
| --- | --- |
| a\\|b | \`x\` **y** |

> Quoted
>
> twice

---

Term

Meaning
`);
});

test("the text format has no markup", () => {
  expect(convertHtml(page, { format: "text", selector: "#top" }).text).toBe(`Release 1.2

Fast & small tool, see how to start.
Next line.

- one
- two
  3. three
  4. four
     more

if (a < b) {
  run();

}

Limits

Name\tValue
a|b\tx y

Quoted

twice

Term

Meaning
`);
});

test("selectors are tags, classes, ids, descendants and lists, the outermost match in the order of the page", () => {
  const html = `<div class="a x"><p>1</p><div class="a">2</div></div><section><p id=i>3</p></section><p class="a">4</p>`;
  const select = (selector: string) => markdown(html, { selector }).replace(/\s+/g, " ").trim();
  expect(select(".a")).toBe("1 2 4");
  expect(select("p.a")).toBe("4");
  expect(select("section p, div .a")).toBe("2 3");
  expect(select("section p#i")).toBe("3");
  expect(select("*.x p")).toBe("1");
});

test("a selector that misses or is not understood gives the whole page and a warning", () => {
  const options = { format: "text", selector: "article" } as const;
  expect(convertHtml("<p>x", options)).toEqual({
    text: "x\n",
    warning: 'nothing on the page matches selector "article", the whole page is taken',
  });
  for (const selector of ["p > a", "a[href]", "p:first-child", "a,", ""]) {
    expect(convertHtml("<p>x", { ...options, selector })).toMatchObject({
      text: "x\n",
      warning: expect.stringContaining("is not understood"),
    });
  }
});

test("scripts, hidden parts and comments leave nothing, and a shown comment stays text", () => {
  expect(markdown(`a<!-- x --><p hidden>b</p><noscript>c</noscript><svg><text>d</text></svg><button>e</button>`)).toBe(
    "a\n",
  );
  expect(markdown(`<p>&lt;!-- verbosity:core --&gt;</p>`)).toBe("&lt;!-- verbosity:core -->\n");
  expect(markdown(`<p><a href="javascript:x()">f</a> <a href="#g">g</a></p>`)).toBe("f g\n");
});

test("entities are decoded, unknown and impossible ones are harmless", () => {
  expect(markdown("&lt;&#65;&#x1F600;&auml;&hellip;&bogus;&amp;lt; &#0;&#xD800;&#9999999; &")).toBe(
    "<A😀ä…&bogus;&lt; \ufffd\ufffd\ufffd &\n",
  );
});

test("every entity of HTML is decoded, and spaces in code become plain ones", () => {
  expect(markdown("&check;&rarrw;&boxur; &copy 2026 &AMP;")).toBe("✓↝└ © 2026 &\n");
  expect(markdown("<pre>a&nbsp;b\u00a0c&ensp;d&shy;e&#27;</pre>")).toBe("```\na b c de\ufffd\n```\n");
});

test("tags are read as browsers read them", () => {
  expect(markdown("a<script><!--<script>b</script>c--></script>d")).toBe("ad\n");
  expect(markdown("<a href=https://b.example/>b</a> c")).toBe("[b](https://b.example/) c\n");
  expect(markdown("<svg><title/></svg>a<![CDATA[b]]>")).toBe("a\n");
});

test("a fence is longer than any in the code, and inline code with marks is doubled", () => {
  expect(markdown("<pre>```\nx\n```</pre><p><code>a`b</code></p>")).toBe("````\n```\nx\n```\n````\n\n`` a`b ``\n");
});

test("broken pages still give their text", () => {
  expect(markdown("<p>a<div>b</p></div></section>c < d <3 <b>e")).toBe("a\n\nb\n\nc < d <3 **e**\n");
  expect(markdown('<a title="x > y" href=z>q</a>')).toBe("[q](https://a.example/docs/z)\n");
  expect(markdown("a<b title='never ends>b")).toBe("a\n");
  expect(markdown("a<b title=x b")).toBe("a\n");
  for (const html of ["", "<", "<!--", "<script>x", "</", "<>", "<!", "<table><tr>", "<ul><li>"]) {
    expect(() => markdown(html)).not.toThrow();
  }
});

const units: [name: string, unit: string][] = [
  ["nested", "<div><ul><li><blockquote>x"],
  ["quotes", '<a x=">"'],
  ["open tags", "<a "],
  ["spaces", "<b> </b>"],
  ["marks in code", "<pre>```\n"],
  ["entities", "&amp"],
  ["comments", "<!--"],
  // The deep run has these, which take the longest.
  ["spaces in code", "<pre> "],
  ["cells", "<tr><td>a"],
  ["paragraphs", "<p>a<br>"],
];
test.each(process.env.PLIMSOLL_DEEP === "1" ? units : units.slice(0, 7))(
  "a megabyte of %s takes a bounded time",
  (_, unit) => {
    const html = `<table>${unit.repeat(Math.ceil(1_000_000 / unit.length))}`;
    const before = process.cpuUsage();
    convertHtml(html, { format: "markdown", selector: "main p", baseUrl: "https://a.example" });
    expect(process.cpuUsage(before).user / 1_000).toBeLessThan(4_000);
  },
);

test("open formatting elements do not multiply with the paragraphs", () => {
  const marks = Array.from({ length: 20_000 }, (_, index) => `<b id=${index}>`).join("");
  const before = process.cpuUsage();
  const text = markdown(`<p>${marks}${"<p>x".repeat(20_000)}`);
  expect(text.length).toBeLessThan(2_000_000);
  expect(process.cpuUsage(before).user / 1_000).toBeLessThan(4_000);
});

test.each(["constructor", "toString", "valueOf"])("an element named %s is one like any other", (tag) => {
  const html = `<${tag}><p>a</p></${tag}>`;
  expect(convertHtml(html, { format: "markdown" }).text).toBe("a\n");
});
