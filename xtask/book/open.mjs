// Opens every page of the built book in headless Chromium, from a server on the loopback address.
// node open.mjs CHROMIUM BOOK FORMULAS SCREENSHOTS. An error on the console, a request that fails or leaves the book, an image
// that does not load, a link without a target and a formula that does not show are printed, and the exit code is 1.

import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, relative } from "node:path";
import { Browser } from "../browser.mjs";

const [chromium, book, formulasFile, screenshots] = process.argv.slice(2);
const formulas = JSON.parse(readFileSync(formulasFile, "utf8"));
const TYPES = {
  ".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".json": "application/json", ".svg": "image/svg+xml",
  ".png": "image/png", ".woff2": "font/woff2", ".csv": "text/csv", ".txt": "text/plain",
};
// Pages of mdBook itself: a copy of everything for printing, a redirect to the first page, an error page and the contents.
const NOT_PAGES = ["print.html", "index.html", "404.html", "toc.html"];

const server = createServer((request, response) => {
  const path = decodeURIComponent(new URL(request.url, "http://book").pathname);
  try {
    if (path.includes("..")) throw new Error("outside");
    const bytes = readFileSync(join(book, path));
    response.writeHead(200, { "content-type": TYPES[extname(path)] ?? "application/octet-stream" });
    response.end(bytes);
  } catch {
    response.writeHead(404).end();
  }
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const origin = `http://127.0.0.1:${server.address().port}`;

const fail = (problems) => {
  console.error(problems.join("\n"));
  browser.process.kill();
  process.exit(1);
};
const browser = new Browser(chromium, (message) => fail([message]));

const LOOK = `(async () => {
  await document.fonts.ready;
  const displays = [...document.querySelectorAll(".formula .katex-display")];
  return {
    ids: [...document.querySelectorAll("[id]")].map((element) => element.id),
    links: [...document.querySelectorAll("main a[href], nav a[href]")].map((link) => link.href),
    images: [...document.images].filter((image) => !image.naturalWidth).map((image) => image.src),
    formulas: displays.filter((display) => display.getBoundingClientRect().height > 0).length,
    errors: document.querySelectorAll(".katex-error").length,
    mathFont: [...document.fonts].some((font) => font.family.includes("KaTeX") && font.status === "loaded"),
    width: document.documentElement.scrollWidth,
  };
})()`;

async function look() {
  const problems = [];
  const all = readdirSync(book, { recursive: true }).map((path) => path.replaceAll("\\", "/"));
  const pages = all.filter((path) => path.endsWith(".html") && !NOT_PAGES.includes(path)).sort();
  const seen = new Map();
  for (const page of pages) {
    const note = (text) => problems.push(`${page}: ${text}`);
    const messages = [];
    const tab = await browser.open(messages);
    for (const width of [390, 1400]) {
      await tab.show(width, "light", 1000);
      await tab.go(`${origin}/${page}`);
      seen.set(page, await tab.evaluate(LOOK));
      if (seen.get(page).width > width) note(`at ${width} pixels the page is ${seen.get(page).width} wide`);
      const { data } = await tab.send("Page.captureScreenshot");
      const name = `${page.replaceAll("/", "-").replace(".html", "")}-${width}.png`;
      writeFileSync(join(screenshots, name), Buffer.from(data, "base64"));
    }
    await tab.close();
    messages.forEach(note);
    for (const request of tab.requests) if (!request.startsWith(origin) && !request.startsWith("data:")) note(`loads ${request}`);
    const found = seen.get(page);
    const wanted = formulas[page.replace(".html", ".md")] ?? 0;
    if (found.formulas !== wanted || found.errors) note(`${found.formulas} of ${wanted} formulas show, ${found.errors} have errors`);
    if (wanted && !found.mathFont) note("the fonts of the formulas did not load");
    for (const image of found.images) note(`the image ${image} does not show`);
  }
  const files = new Set(all);
  for (const [page, { links }] of seen) {
    for (const link of new Set(links)) {
      const url = new URL(link);
      if (url.origin !== origin) continue;
      const path = decodeURIComponent(url.pathname).slice(1) || "index.html";
      const anchor = decodeURIComponent(url.hash.slice(1));
      if (!files.has(path)) problems.push(`${page}: ${path} does not exist`);
      else if (anchor && seen.has(path) && !seen.get(path).ids.includes(anchor)) problems.push(`${page}: ${path} has no heading #${anchor}`);
    }
  }
  return [pages.length, problems];
}

mkdirSync(screenshots, { recursive: true });
setTimeout(() => fail(["the browser did not answer within ten minutes"]), 600000).unref();
const [count, problems] = await look().catch((error) => fail([error.stack]));
await browser.close();
server.close();
if (problems.length) fail([...new Set(problems)]);
console.log(`${count} pages open without errors; the screenshots are in ${relative(process.cwd(), screenshots)}`);
