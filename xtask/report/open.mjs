// Opens a page in headless Chromium: prints errors, contrast problems and what the page loads, and takes screenshots.
// node open.mjs CHROMIUM PAGE OUTPUT-PREFIX.

import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { Browser } from "../browser.mjs";

const [chromium, page, prefix] = process.argv.slice(2);
const address = pathToFileURL(resolve(page)).href;
const problems = [];
const fail = (words) => {
  console.error(words);
  browser.process.kill();
  process.exit(1);
};
const browser = new Browser(chromium, fail);

async function look() {
  const tab = await browser.open(problems);
  for (const [name, width] of [["phone", 390], ["tablet", 768], ["desktop", 1400]]) {
    for (const scheme of ["light", "dark"]) {
      const where = `at ${width} pixels, ${scheme}`;
      await tab.show(width, scheme, 844);
      await tab.go(address);
      // Closed parts may be too wide as well. On a phone, they would make the picture longer than the browser allows.
      const unfold = (open) => tab.evaluate(`document.querySelectorAll("details").forEach((part) => (part.open = ${open}))`);
      await unfold(true);
      const wide = await tab.evaluate("document.documentElement.scrollWidth");
      if (wide > width) problems.push(`${where}: the page is ${wide} wide`);
      const cut = await tab.evaluate(`[...document.querySelectorAll(".scroll")].filter((part) => part.scrollWidth > part.clientWidth + 1).map((part) => part.querySelector("th").textContent)`);
      if (name === "desktop") for (const first of cut) problems.push(`${where}: the table that begins with "${first}" is cut`);
      for (const [text, contrast] of await tab.evaluate(`(${lowContrast})()`)) problems.push(`${where}: contrast ${contrast} of "${text}"`);
      await unfold(false);
      await hover(tab, where, width);
      writeFileSync(`${prefix}-${name}-${scheme}.png`, await tab.picture(width));
    }
  }
  await tab.send("Emulation.clearDeviceMetricsOverride");
  const { data } = await tab.send("Page.printToPDF", { printBackground: false });
  writeFileSync(`${prefix}-print.pdf`, Buffer.from(data, "base64"));
  for (const request of new Set(tab.requests))
    if (request !== address && request !== "data:," && !request.startsWith("data:image/png;")) problems.push(`the page loads ${request}`);
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
async function hover(tab, where, width) {
  const count = await tab.evaluate(`document.querySelectorAll("figure.plot .canvas svg").length`);
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
      const [x, y] = await tab.evaluate(`(() => {
        const svg = document.querySelectorAll("figure.plot .canvas svg")[${number}];
        svg.scrollIntoView({ block: "center" });
        const box = svg.getBoundingClientRect();
        return [box.left + ${part} * box.width, box.top + 0.5 * box.height];
      })()`);
      // The page hides the values on a scroll event, which comes with the next frame.
      await tab.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
      await tab.send("Input.dispatchMouseEvent", { type: "mouseMoved", x, y });
      const problem = await tab.evaluate(misplaced);
      if (problem) problems.push(`${where}: the tooltip of plot ${number + 1} ${problem}`);
      else if (!/\d/.test(await tab.evaluate(tip))) problems.push(`${where}: pointing at plot ${number + 1} shows no values`);
    }
  }
  await tab.send("Input.dispatchMouseEvent", { type: "mouseMoved", x: 0, y: 0 });
  await tab.evaluate(`document.querySelector("figure.plot .canvas svg").focus()`);
  await tab.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
  for (const type of ["keyDown", "keyUp"]) await tab.send("Input.dispatchKeyEvent", { type, key: "End" });
  if (!/\d/.test(await tab.evaluate(tip))) problems.push(`${where}: the keyboard shows no values`);
}

setTimeout(() => fail("the browser did not answer within five minutes"), 300000).unref();
await look().catch((error) => fail(error.stack));
await browser.close();
if (problems.length) fail([...new Set(problems)].join("\n"));
