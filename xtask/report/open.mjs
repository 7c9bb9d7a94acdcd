// Opens a page in headless Chromium: prints what it complains about and what it loads, and takes pictures of it.
// node open.mjs CHROMIUM PAGE OUTPUT-PREFIX. Talks to the browser over its debugging pipe, so that nothing else is needed.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [chromium, page, prefix] = process.argv.slice(2);
const address = pathToFileURL(resolve(page)).href;
const profile = mkdtempSync(join(tmpdir(), "floras-chromium-"));
const browser = spawn(
  chromium,
  ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars", "--remote-debugging-pipe", `--user-data-dir=${profile}`, "about:blank"],
  { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] },
);
browser.on("error", (error) => fail(`cannot start ${chromium}: ${error.message}`));

let nextId = 1;
let buffered = "";
const waiting = new Map();
const listeners = [];
browser.stdio[4].on("data", (bytes) => {
  buffered += bytes;
  const messages = buffered.split("\0");
  buffered = messages.pop();
  for (const message of messages.map(JSON.parse)) {
    if (message.id) {
      const { resolve: done, reject } = waiting.get(message.id);
      waiting.delete(message.id);
      if (message.error) reject(new Error(message.error.message));
      else done(message.result);
    } else listeners.forEach((listener) => listener(message));
  }
});

function send(method, params = {}, sessionId) {
  const id = nextId++;
  browser.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + "\0");
  return new Promise((done, reject) => waiting.set(id, { resolve: done, reject }));
}

function fail(words) {
  console.error(words);
  browser.kill();
  process.exit(1);
}

const problems = [];
listeners.push(({ method, params }) => {
  if (method === "Runtime.exceptionThrown") problems.push(`exception: ${params.exceptionDetails.exception?.description ?? params.exceptionDetails.text}`);
  if (method === "Runtime.consoleAPICalled") problems.push(`console.${params.type}: ${params.args.map((arg) => arg.value).join(" ")}`);
  if (method === "Log.entryAdded") problems.push(`${params.entry.level}: ${params.entry.text}`);
  if (method === "Network.requestWillBeSent" && params.request.url !== address && params.request.url !== "data:," && !params.request.url.startsWith("data:image/png;"))
    problems.push(`the page loads ${params.request.url}`);
});

async function look() {
  const { targetId } = await send("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await send("Target.attachToTarget", { targetId, flatten: true });
  const tell = (method, params) => send(method, params, sessionId);
  for (const domain of ["Page", "Runtime", "Log", "Network"]) await tell(`${domain}.enable`);
  const evaluate = async (expression) => (await tell("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true })).result.value;
  for (const [name, width] of [["desktop", 1200], ["phone", 390]]) {
    for (const scheme of ["light", "dark"]) {
      await tell("Emulation.setDeviceMetricsOverride", { width, height: 844, deviceScaleFactor: 1, mobile: name === "phone" });
      await tell("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
      const loaded = new Promise((done) => listeners.push(({ method }) => method === "Page.loadEventFired" && done()));
      await tell("Page.navigate", { url: address });
      await loaded;
      // What is folded may be too wide as well. On a phone, it would make a picture longer than the browser takes.
      const unfold = (open) => evaluate(`document.querySelectorAll("details").forEach((part) => (part.open = ${open}))`);
      await unfold(true);
      const wide = await evaluate("document.documentElement.scrollWidth");
      if (wide > width) problems.push(`at ${width} pixels the page is ${wide} wide`);
      if (name === "desktop") await hover(evaluate, tell);
      else await unfold(false);
      const height = Math.min(16000, await evaluate("document.documentElement.scrollHeight"));
      const clip = { x: 0, y: 0, width, height, scale: 1 };
      const { data } = await tell("Page.captureScreenshot", { clip, captureBeyondViewport: true });
      writeFileSync(`${prefix}-${name}-${scheme}.png`, Buffer.from(data, "base64"));
    }
  }
}

// The values under the pointer must show, and the same by keyboard.
async function hover(evaluate, tell) {
  const middle = await evaluate(`(() => {
    const svg = document.querySelector("figure.plot .canvas svg");
    if (!svg) return null;
    svg.scrollIntoView({ block: "center" });
    const box = svg.getBoundingClientRect();
    return [box.left + 0.7 * box.width, box.top + 0.5 * box.height];
  })()`);
  if (!middle) return problems.push("the page has no plot");
  await tell("Input.dispatchMouseEvent", { type: "mouseMoved", x: middle[0], y: middle[1] });
  const tip = `(() => { const tip = document.querySelector(".tip:not([hidden])"); return tip ? tip.textContent : ""; })()`;
  if (!/\d/.test(await evaluate(tip))) problems.push("pointing at a plot shows no values");
  await evaluate(`document.querySelector("figure.plot .canvas svg").focus()`);
  for (const type of ["keyDown", "keyUp"]) await tell("Input.dispatchKeyEvent", { type, key: "End" });
  if (!/\d/.test(await evaluate(tip))) problems.push("the keyboard shows no values");
}

setTimeout(() => fail("the browser did not answer within two minutes"), 120000).unref();
await look().catch((error) => fail(error.stack));
browser.kill();
await new Promise((done) => browser.on("exit", done));
rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
if (problems.length) fail([...new Set(problems)].join("\n"));
