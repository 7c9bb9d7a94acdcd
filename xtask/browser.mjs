// Headless Chromium over its debugging pipe, so that no other package is needed.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars", "--remote-debugging-pipe"];

export class Browser {
  // `program` is the path of Chromium. `fail` is called with a message if it does not start.
  constructor(program, fail) {
    this.profile = mkdtempSync(join(tmpdir(), "floras-chromium-"));
    const options = { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] };
    this.process = spawn(program, [...FLAGS, `--user-data-dir=${this.profile}`, "about:blank"], options);
    this.process.on("error", (error) => fail(`cannot start ${program}: ${error.message}`));
    this.nextId = 1;
    this.waiting = new Map();
    this.listeners = [];
    let buffered = "";
    this.process.stdio[4].on("data", (bytes) => {
      buffered += bytes;
      const messages = buffered.split("\0");
      buffered = messages.pop();
      messages.map(JSON.parse).forEach((message) => this.receive(message));
    });
  }

  receive(message) {
    if (!message.id) return this.listeners.forEach((listener) => listener(message));
    const { done, reject } = this.waiting.get(message.id);
    this.waiting.delete(message.id);
    if (message.error) reject(new Error(message.error.message));
    else done(message.result);
  }

  send(method, params = {}, sessionId) {
    const id = this.nextId++;
    this.process.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + "\0");
    return new Promise((done, reject) => this.waiting.set(id, { done, reject }));
  }

  // A new tab. `problems` collects exceptions and messages on its console.
  async open(problems) {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const tab = new Tab(this, targetId, sessionId);
    this.listeners.push(({ method, params, sessionId: from }) => {
      if (from !== sessionId) return;
      if (method === "Runtime.exceptionThrown") problems.push(`exception: ${params.exceptionDetails.exception?.description ?? params.exceptionDetails.text}`);
      if (method === "Runtime.consoleAPICalled") problems.push(`console.${params.type}: ${params.args.map((arg) => arg.value).join(" ")}`);
      if (method === "Log.entryAdded") problems.push(`${params.entry.level}: ${params.entry.text} ${params.entry.url ?? ""}`);
      if (method === "Network.requestWillBeSent") tab.requests.push(params.request.url);
    });
    for (const domain of ["Page", "Runtime", "Log", "Network"]) await tab.send(`${domain}.enable`);
    return tab;
  }

  async close() {
    const ended = new Promise((done) => this.process.on("exit", done));
    this.process.kill();
    await ended;
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

class Tab {
  constructor(browser, targetId, sessionId) {
    Object.assign(this, { browser, targetId, sessionId, requests: [] });
  }

  send(method, params) {
    return this.browser.send(method, params, this.sessionId);
  }

  async evaluate(expression) {
    const { result } = await this.send("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true });
    return result.value;
  }

  async show(width, scheme, height = 900) {
    await this.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: width < 500 });
    await this.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
  }

  async go(url) {
    const loaded = new Promise((done) =>
      this.browser.listeners.push(({ method, sessionId }) => method === "Page.loadEventFired" && sessionId === this.sessionId && done()),
    );
    await this.send("Page.navigate", { url });
    await loaded;
  }

  // A picture of the whole page, as PNG.
  async picture(width) {
    const height = Math.min(16000, await this.evaluate("document.documentElement.scrollHeight"));
    const clip = { x: 0, y: 0, width, height, scale: 1 };
    const { data } = await this.send("Page.captureScreenshot", { clip, captureBeyondViewport: true });
    return Buffer.from(data, "base64");
  }

  close() {
    return this.browser.send("Target.closeTarget", { targetId: this.targetId });
  }
}
