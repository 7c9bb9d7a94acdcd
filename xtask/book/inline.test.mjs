// node --test: which code of a page is a formula, and how it is written in TeX.

import assert from "node:assert/strict";
import { test } from "node:test";
import { tex } from "./inline.mjs";

test("formulas become TeX", () => {
  const pairs = [
    ["ε ≤ 8", "ε \\le  8"],
    ["‖v‖²·(Σ⁻¹)_kk", "\\Vert v\\Vert ^{2}\\cdot (Σ^{-1})_{kk}"],
    ["√(½ + s²)", "\\sqrt{\\tfrac12  + s^{2}}"],
    ["max(\\|ĥ\\|, c·s)", "\\max (\\vert \\hat{h}\\vert ,\\, c\\cdot s)"],
    ["w_{t+1}^k", "w_{t+1}^{k}"],
    ["C_max", "C_{\\mathrm{max}}"],
    ["1,000·K", "1{,}000\\cdot K"],
  ];
  for (const [code, expected] of pairs) assert.equal(tex(code), expected);
});

test("names, settings and commands stay code", () => {
  const codes = ["any-channel", "uplink.snr_db", "mmse=κ", "rounds=40", "0.27", "(N,)", "v2", "a_raw_signal", "1e-5", "floras run", "max", "--rounds", "[0, 1"];
  for (const code of codes) assert.equal(tex(code), null, code);
});
