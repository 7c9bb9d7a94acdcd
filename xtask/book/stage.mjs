// Copies the pages of docs/ for mdBook. Formulas, in blocks and in running text, become HTML, and links that lead out of docs/ become paths.
// node stage.mjs DOCS STAGE KATEX: STAGE/src gets the pages, STAGE/formulas.json the number of formulas per page.

import { cpSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, normalize, posix, relative } from "node:path";
import { tex } from "./inline.mjs";

const [docs, stage, katexDirectory] = process.argv.slice(2);
const katex = createRequire(join(katexDirectory, "package.json"))("katex");

// A fenced block with its marks, in capture groups: indentation, language, content.
const FENCE = /^( *)```([a-z-]*)\n([\s\S]*?)^\1```$/gm;
// Code in running text.
const CODE = /(?<!`)`([^`\n]+)`(?!`)/g;
const LINK = /(!?)\[([^\]]*)\]\(([^)\s]+)\)/g;

const problems = [];
const formulas = {};

function formula(page, indent, source) {
  formulas[page] = (formulas[page] ?? 0) + 1;
  try {
    const html = katex.renderToString(source.trim(), { displayMode: true, strict: "error", output: "htmlAndMathml" });
    // On one line, because a line without indentation would end the list item around the formula.
    return `${indent}<div class="formula">${html.replaceAll("\n", " ")}</div>`;
  } catch (error) {
    problems.push(`${page}: ${error.message}`);
    return "";
  }
}

// Characters that have a meaning in HTML or Markdown, as references.
const escaped = (text, characters) => text.replace(characters, (character) => `&#${character.codePointAt(0)};`);

// A formula in running text, or code as it is. It is one line, because it may be in a table.
function inline(whole, code) {
  const source = tex(code);
  if (source === null) return whole;
  const html = katex.renderToString(source, { strict: "error", output: "html" }).replaceAll("\n", " ");
  const text = html.replace(/>[^<]+/g, (part) => ">" + escaped(part.slice(1), /[*_~|`[\]]/g));
  const label = escaped(code.replaceAll("\\|", "|"), /[&<>"|]/g);
  return `<span class="math" role="math" aria-label="${label}">${text}</span>`;
}

// A link out of docs/ shows the path from the root of the repository instead.
function link(page, whole, image, text, target) {
  if (/^[a-z]+:/.test(target) || target.startsWith("#")) return whole;
  const path = posix.normalize(posix.join(posix.dirname(page), target.split("#")[0]));
  if (!path.startsWith("..")) return whole;
  if (image) problems.push(`${page}: the image ${target} is not in docs/`);
  const fromRoot = path.replace(/^\.\.\//, "");
  return text.includes(fromRoot) ? text : `${text} (\`${fromRoot}\`)`;
}

function staged(page, text) {
  let out = "";
  let end = 0;
  // Headings keep their code, because links name them by their text.
  const line = (part) => (part.startsWith("#") ? part : part.replace(CODE, inline));
  const linked = (part) => part.replace(LINK, (...match) => link(page, match[0], match[1], match[2], match[3]));
  const prose = (part) => linked(part).split("\n").map(line).join("\n");
  for (const block of text.matchAll(FENCE)) {
    const [whole, indent, language, content] = block;
    out += prose(text.slice(end, block.index));
    out += language === "math" ? formula(page, indent, content) : whole;
    end = block.index + whole.length;
  }
  return out + prose(text.slice(end));
}

for (const entry of readdirSync(docs, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile()) continue;
  const from = join(entry.parentPath, entry.name);
  const page = normalize(relative(docs, from)).replaceAll("\\", "/");
  const to = join(stage, "src", page);
  mkdirSync(dirname(to), { recursive: true });
  if (page.endsWith(".md")) writeFileSync(to, staged(page, readFileSync(from, "utf8")));
  else cpSync(from, to);
}
writeFileSync(join(stage, "formulas.json"), JSON.stringify(formulas));

// The style sheet goes beside book.toml, its fonts among the pages: mdBook copies both to the same directory of the book.
const dist = join(katexDirectory, "node_modules", "katex", "dist");
mkdirSync(join(stage, "katex"), { recursive: true });
cpSync(join(dist, "katex.min.css"), join(stage, "katex", "katex.min.css"));
const isCurrent = (path) => !/\.(ttf|woff)$/.test(path);
cpSync(join(dist, "fonts"), join(stage, "src", "katex", "fonts"), { recursive: true, filter: isCurrent });

if (problems.length) {
  console.error(problems.join("\n"));
  process.exit(1);
}
