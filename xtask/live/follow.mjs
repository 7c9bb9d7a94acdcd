// Follows a training in headless Chromium: node follow.mjs CHROMIUM FLORAS OUTPUT-DIRECTORY.
//
// The curves and epsilon must grow while the training runs, and texts also in a background tab. At its end the page must state it and lead to the report, and the
// program must end when the page is closed. A page whose server was ended must connect to its successor. Messages on the
// console, requests to other servers and pages wider than the screen are errors. Screenshots are left in the directory.

import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Browser } from "../browser.mjs";

const [chromium, floras, out] = process.argv.slice(2);
// Rounds in a trial: enough to be followed.
const ROUNDS = 4000;
// As on the page: from five digits on, in groups with narrow spaces.
const grouped = (count) => (count < 10000 ? String(count) : count.toLocaleString("en-US").replaceAll(",", "\u202f"));
const problems = [];
const children = [];
const fail = (words) => {
  console.error(words);
  children.forEach((child) => child.kill());
  process.exit(1);
};
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
setTimeout(() => fail(["no end within five minutes", ...problems].join("\n")), 300000).unref();

// Starts floras; `url` is the address that it prints, `ended` its exit code.
function start(...args) {
  const child = spawn(floras, args, { stdio: ["ignore", "ignore", "pipe"] });
  children.push(child);
  let text = "";
  let found = null;
  const url = new Promise((done) =>
    child.stderr.on("data", (bytes) => {
      text += bytes;
      found = /live view: (http:\S+)/.exec(text);
      if (found) done(found[1]);
    }),
  );
  const ended = new Promise((done) => child.on("exit", done));
  ended.then(() => {
    children.splice(children.indexOf(child), 1);
    if (!found) fail(`floras ended without an address: ${text}`);
  });
  return { child, url, ended };
}

async function until(tab, what, expression) {
  for (let attempt = 0; attempt < 600; attempt++) {
    if (await tab.evaluate(expression)) return;
    await pause(200);
  }
  fail([`not within two minutes: ${what}`, ...problems].join("\n"));
}

const state = (name) => `document.body.dataset.state === "${name}"`;
const seen = `({
  state: document.body.dataset.state,
  accuracy: Number(document.getElementById("plot-accuracy").dataset.points),
  loss: Number(document.getElementById("plot-loss").dataset.points),
  gain: Number(document.getElementById("plot-gain").dataset.points),
  epsilon: document.getElementById("epsilon").textContent,
  rounds: document.getElementById("rounds").textContent,
})`;

async function pictures(tab, name) {
  for (const width of [1400, 768, 390])
    for (const scheme of ["light", "dark"]) {
      await tab.show(width, scheme);
      await pause(300);
      const wide = await tab.evaluate("document.documentElement.scrollWidth");
      if (wide > width) problems.push(`${name}: at ${width} pixels the page is ${wide} wide`);
      writeFileSync(join(out, `${name}-${width}-${scheme}.png`), await tab.picture(width));
    }
  await tab.show(1400, "light");
}

// A background tab draws no frames; its title and its texts must follow the run.
async function withoutFrames(browser, url) {
  const tab = await browser.open(problems);
  await tab.send("Page.addScriptToEvaluateOnNewDocument", { source: "window.requestAnimationFrame = () => 0;" });
  await tab.go(url);
  await until(tab, "the state in a background tab", `${state("running")} && /^\\d+ % – /.test(document.title)`);
  await tab.close();
}

// A training, from its first rounds to its report.
async function training(browser) {
  const run = start("run", "quick", "--trials", "2", "--rounds", String(ROUNDS), "--threads", "2", "--live", "--out", join(out, "run"));
  const url = await run.url;
  const tab = await browser.open(problems);
  await tab.show(1400, "light");
  await tab.go(url);
  await until(tab, "the training runs", state("running"));
  await until(tab, "an accuracy and an epsilon", `/\\d %/.test(document.getElementById("accuracy").textContent) && /\\d/.test(document.getElementById("epsilon").textContent)`);
  const source = await (await fetch(new URL("/live.js", url))).text();
  const upper = new Function(source.slice(source.indexOf("const number"), source.indexOf("const percent")) + "return upper;")();
  const bounds = [10.0334, 0.5, 9.996, 4001.2, 2.011e-5].map((value) => upper(value)).join(" ");
  if (bounds !== "10.1 0.5 10 4010 2.02e-5") problems.push("upper bounds are shown as " + bounds);
  await withoutFrames(browser, url);
  const first = await tab.evaluate(seen);
  await until(tab, "more points and another epsilon", `(() => { const now = ${seen}; return now.state === "running" && now.accuracy > ${first.accuracy} && now.loss > ${first.loss} && now.gain > ${first.gain} && now.epsilon !== ${JSON.stringify(first.epsilon)}; })()`);
  const second = await tab.evaluate(seen);
  console.log("while it runs:", JSON.stringify(first), JSON.stringify(second));
  const box = await tab.evaluate(`(() => { const box = document.querySelector("#plot-accuracy .canvas svg").getBoundingClientRect(); return [box.left + 0.3 * box.width, box.top + 0.5 * box.height]; })()`);
  await tab.send("Input.dispatchMouseEvent", { type: "mouseMoved", x: box[0], y: box[1] });
  await until(tab, "values under the pointer", `/round \\d.* %/.test(document.querySelector("#plot-accuracy .tip:not([hidden])")?.textContent)`);
  await pictures(tab, "running");
  if (!(await tab.evaluate(state("running")))) problems.push("the training ended before its pictures were taken");
  await tab.evaluate(`document.querySelector("input[value=trials]").click()`);
  await pause(300);
  writeFileSync(join(out, "running-trials.png"), await tab.picture(1400));
  await until(tab, "the end of the training and its report", `${state("finished")} && document.querySelector("#notice a") !== null`);
  const last = await tab.evaluate(seen);
  console.log("at the end:", JSON.stringify(last));
  if (last.rounds !== `${grouped(2 * ROUNDS)} of ${grouped(2 * ROUNDS)}`) problems.push(`rounds at the end: ${last.rounds}`);
  const summary = JSON.parse(readFileSync(join(out, "run", "summary.json"), "utf8"));
  const epsilon = summary.privacy.views.any_channel.epsilon;
  if (Math.abs(Number(last.epsilon.replace(/^\D*/, "")) / epsilon - 1) > 0.01) problems.push(`epsilon at the end: ${last.epsilon}, in the summary ${epsilon}`);
  await tab.evaluate(`document.querySelector("input[value=mean]").click()`);
  await pictures(tab, "finished");
  const report = await browser.open(problems);
  await report.go(url + "report.html");
  if (!(await report.evaluate(`document.querySelectorAll("figure svg").length`))) problems.push("the report has no plots");
  for (const request of [...tab.requests, ...report.requests])
    if (!request.startsWith(url) && !request.startsWith("data:")) problems.push(`the page loads ${request}`);
  await report.close();
  await tab.close();
  const code = await run.ended;
  if (code !== 0) problems.push(`floras run ended with ${code}`);
}

// An interrupted run, and a server that is ended and started again on the same port.
async function interruption(browser) {
  const directory = join(out, "interrupted");
  const run = start("run", "private", "--trials", "1", "--rounds", "100000", "--set", "privacy.budget=100000", "--threads", "1", "--live", "--out", directory);
  const port = new URL(await run.url).port;
  while (!existsSync(join(directory, "metrics.jsonl")) || !readFileSync(join(directory, "metrics.jsonl")).includes("\n")) await pause(100);
  run.child.kill("SIGKILL");
  await run.ended;
  let watch = start("watch", directory, "--port", port);
  const tab = await browser.open([]);
  await tab.show(1400, "light");
  await tab.go(await watch.url);
  await until(tab, "the page of an interrupted run", state("stopped"));
  const points = (await tab.evaluate(seen)).loss;
  await pictures(tab, "interrupted");
  watch.child.kill("SIGKILL");
  await watch.ended;
  await until(tab, "a lost connection", state("lost"));
  watch = start("watch", directory, "--port", port);
  await watch.url;
  await until(tab, "a new connection", state("stopped"));
  if ((await tab.evaluate(seen)).loss !== points) problems.push("a new connection shows other points");
  watch.child.kill("SIGKILL");
  await watch.ended;
}

const browser = new Browser(chromium, fail);
try {
  await training(browser);
  await interruption(browser);
} catch (error) {
  fail(error.stack);
}
await browser.close();
if (problems.length) fail([...new Set(problems)].join("\n"));
