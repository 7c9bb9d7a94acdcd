// Opens every page of the built book in headless Chromium, from a server on the loopback address.
// node open.mjs CHROMIUM BOOK FORMULAS SCREENSHOTS. An error on the console, a request that fails or leaves the book, an image
// that does not load, a link without a target and a formula that does not show are printed, and the exit code is 1.

import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, relative } from "node:path";

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

const profile = mkdtempSync(join(tmpdir(), "floras-chromium-"));
const flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"];
const browser = spawn(chromium, [...flags, "--remote-debugging-pipe", `--user-data-dir=${profile}`, "about:blank"], {
  stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
});
browser.on("error", (error) => fail([`cannot start ${chromium}: ${error.message}`]));

let nextId = 1;
let buffered = "";
const waiting = new Map();
let listener = () => {};
browser.stdio[4].on("data", (bytes) => {
  buffered += bytes;
  const messages = buffered.split("\0");
  buffered = messages.pop();
  for (const message of messages.map(JSON.parse)) {
    if (!message.id) {
      listener(message);
      continue;
    }
    const { done, reject } = waiting.get(message.id);
    waiting.delete(message.id);
    if (message.error) reject(new Error(message.error.message));
    else done(message.result);
  }
});

function send(method, params = {}, sessionId) {
  const id = nextId++;
  browser.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + "\0");
  return new Promise((done, reject) => waiting.set(id, { done, reject }));
}

function fail(problems) {
  console.error(problems.join("\n"));
  browser.kill();
  process.exit(1);
}

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
  const { targetId } = await send("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
  const ask = (method, params) => send(method, params, sessionId);
  for (const domain of ["Page", "Runtime", "Log", "Network"]) await ask(`${domain}.enable`);
  const all = readdirSync(book, { recursive: true }).map((path) => path.replaceAll("\\", "/"));
  const pages = all.filter((path) => path.endsWith(".html") && !NOT_PAGES.includes(path)).sort();
  const seen = new Map();
  for (const page of pages) {
    let loaded = () => {};
    const note = (text) => problems.push(`${page}: ${text}`);
    listener = ({ method, params }) => {
      if (method === "Runtime.exceptionThrown") note(`exception: ${params.exceptionDetails.text}`);
      if (method === "Runtime.consoleAPICalled" && ["error", "warning"].includes(params.type))
        note(`console.${params.type}: ${params.args.map((arg) => arg.value).join(" ")}`);
      if (method === "Log.entryAdded" && params.entry.level === "error") note(`${params.entry.text} ${params.entry.url ?? ""}`);
      if (method === "Network.requestWillBeSent" && !params.request.url.startsWith(origin) && !params.request.url.startsWith("data:"))
        note(`loads ${params.request.url}`);
      if (method === "Page.loadEventFired") loaded();
    };
    for (const [width, height] of [[390, 844], [1400, 1000]]) {
      await ask("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: width < 500 });
      const finished = new Promise((done) => (loaded = done));
      await ask("Page.navigate", { url: `${origin}/${page}` });
      await finished;
      const { result } = await ask("Runtime.evaluate", { expression: LOOK, returnByValue: true, awaitPromise: true });
      seen.set(page, result.value);
      if (result.value.width > width) note(`at ${width} pixels the page is ${result.value.width} wide`);
      const shot = await ask("Page.captureScreenshot", {});
      const name = `${page.replaceAll("/", "-").replace(".html", "")}-${width}.png`;
      writeFileSync(join(screenshots, name), Buffer.from(shot.data, "base64"));
    }
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
browser.kill();
await new Promise((done) => browser.on("exit", done));
rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
server.close();
if (problems.length) fail([...new Set(problems)]);
console.log(`${count} pages open without errors; the screenshots are in ${relative(process.cwd(), screenshots)}`);
