// Opens a page in headless Chromium: prints errors, contrast problems and what the page loads, and takes screenshots.
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
  const command = (method, params) => send(method, params, sessionId);
  for (const domain of ["Page", "Runtime", "Log", "Network"]) await command(`${domain}.enable`);
  const evaluate = async (expression) => (await command("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true })).result.value;
  for (const [name, width] of [["phone", 390], ["tablet", 768], ["desktop", 1400]]) {
    for (const scheme of ["light", "dark"]) {
      const where = `at ${width} pixels, ${scheme}`;
      await command("Emulation.setDeviceMetricsOverride", { width, height: 844, deviceScaleFactor: 1, mobile: name === "phone" });
      await command("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
      const loaded = new Promise((done) => listeners.push(({ method }) => method === "Page.loadEventFired" && done()));
      await command("Page.navigate", { url: address });
      await loaded;
      // Closed parts may be too wide as well. On a phone, they would make the picture longer than the browser allows.
      const unfold = (open) => evaluate(`document.querySelectorAll("details").forEach((part) => (part.open = ${open}))`);
      await unfold(true);
      const wide = await evaluate("document.documentElement.scrollWidth");
      if (wide > width) problems.push(`${where}: the page is ${wide} wide`);
      for (const [text, contrast] of await evaluate(`(${lowContrast})()`)) problems.push(`${where}: contrast ${contrast} of "${text}"`);
      await unfold(false);
      await hover(evaluate, command, where, width);
      const height = Math.min(16000, await evaluate("document.documentElement.scrollHeight"));
      const clip = { x: 0, y: 0, width, height, scale: 1 };
      const { data } = await command("Page.captureScreenshot", { clip, captureBeyondViewport: true });
      writeFileSync(`${prefix}-${name}-${scheme}.png`, Buffer.from(data, "base64"));
    }
  }
  await command("Emulation.clearDeviceMetricsOverride");
  const { data } = await command("Page.printToPDF", { printBackground: false });
  writeFileSync(`${prefix}-print.pdf`, Buffer.from(data, "base64"));
}

// Runs in the page: texts whose contrast with their background is below 4.5 (WCAG 2.2, level AA).
function lowContrast() {
  const parse = (colour) => {
    const parts = colour.match(/[\d.]+/g).map(Number);
    return parts.length > 3 ? parts : [...parts, 1];
  };
  const over = (top, below) => top.slice(0, 3).map((part, index) => part * top[3] + below[index] * (1 - top[3]));
  const luminance = (colour) => {
    const [red, green, blue] = colour.map((part) => (part / 255 > 0.04045 ? ((part / 255 + 0.055) / 1.055) ** 2.4 : part / 255 / 12.92));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const background = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.unshift(parse(getComputedStyle(at).backgroundColor));
    return layers.reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.trim();
    const box = element.getBoundingClientRect();
    if (!text || !box.width || ["SCRIPT", "STYLE"].includes(element.tagName)) continue;
    const style = getComputedStyle(element);
    let paper = background(element);
    let ink = parse(style.color);
    if (element.tagName === "text") {
      ink = parse(style.fill);
      // Boxes that were drawn before the text and lie below its middle.
      const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
      for (const field of element.ownerSVGElement.querySelectorAll("rect")) {
        const at = field.getBoundingClientRect();
        const isBelow = x > at.left && at.right > x && y > at.top && at.bottom > y;
        const isBefore = field.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING;
        const fill = getComputedStyle(field);
        if (isBelow && isBefore) paper = over([...parse(fill.fill).slice(0, 3), Number(fill.fillOpacity)], paper);
      }
    }
    const [one, other] = [luminance(over(ink, paper)), luminance(paper)];
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (contrast < 4.5) found.push([text.slice(0, 40), contrast.toFixed(2)]);
  }
  return found.slice(0, 10);
}

// Values must show beside the pointer in every plot: inside the viewport, and not over a marked point. The same by keyboard.
async function hover(evaluate, command, where, width) {
  const count = await evaluate(`document.querySelectorAll("figure.plot .canvas svg").length`);
  if (!count) return problems.push("the page has no plot");
  const tip = `(() => { const tip = document.querySelector(".tip:not([hidden])"); return tip ? tip.textContent : ""; })()`;
  const misplaced = `(() => {
    const tip = document.querySelector(".tip:not([hidden])");
    if (!tip) return "is missing";
    const box = tip.getBoundingClientRect();
    if (box.left < 0 || box.top < 0 || box.right > ${width} || box.bottom > innerHeight) return "leaves the viewport";
    for (const point of document.querySelectorAll("circle.point")) {
      const at = point.getBoundingClientRect();
      if (at.right > box.left && box.right > at.left && at.bottom > box.top && box.bottom > at.top) return "covers a point";
    }
    return "";
  })()`;
  for (let number = 0; number < count; number++) {
    for (const part of [0.15, 0.5, 0.9]) {
      const [x, y] = await evaluate(`(() => {
        const svg = document.querySelectorAll("figure.plot .canvas svg")[${number}];
        svg.scrollIntoView({ block: "center" });
        const box = svg.getBoundingClientRect();
        return [box.left + ${part} * box.width, box.top + 0.5 * box.height];
      })()`);
      // The page hides the values on a scroll event, which comes with the next frame.
      await evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
      await command("Input.dispatchMouseEvent", { type: "mouseMoved", x, y });
      const problem = await evaluate(misplaced);
      if (problem) problems.push(`${where}: the tooltip of plot ${number + 1} ${problem}`);
      else if (!/\d/.test(await evaluate(tip))) problems.push(`${where}: pointing at plot ${number + 1} shows no values`);
    }
  }
  await command("Input.dispatchMouseEvent", { type: "mouseMoved", x: 0, y: 0 });
  await evaluate(`document.querySelector("figure.plot .canvas svg").focus()`);
  await evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
  for (const type of ["keyDown", "keyUp"]) await command("Input.dispatchKeyEvent", { type, key: "End" });
  if (!/\d/.test(await evaluate(tip))) problems.push(`${where}: the keyboard shows no values`);
}

setTimeout(() => fail("the browser did not answer within five minutes"), 300000).unref();
await look().catch((error) => fail(error.stack));
browser.kill();
await new Promise((done) => browser.on("exit", done));
rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
if (problems.length) fail([...new Set(problems)].join("\n"));
