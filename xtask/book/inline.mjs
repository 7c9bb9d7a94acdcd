// Formulas in running text. The pages write them as code, so that they are readable everywhere: `ε ≤ 8`, `‖v‖²`, `σ_z²`.
// `tex(code)` returns the formula as TeX, or null for code that is not a formula: names, settings, commands.

const FUNCTIONS = new Set(["ln", "log", "exp", "max", "min", "sin", "cos", "tan", "arctan", "sup", "inf"]);
const NAMES = new Set(["Re", "Im", "sgn", "sign", "asinh", "atan", "erfc", "dB", "Var", "Lévy", "Cauchy"].map((name) => name.normalize("NFD")));
const MARKS = { "\u0302": "\\hat", "\u0303": "\\tilde", "\u0304": "\\bar", "\u0307": "\\dot" };
const SUPERSCRIPTS = { "⁰": "0", "¹": "1", "²": "2", "³": "3", "⁴": "4", "⁵": "5", "⁶": "6", "⁷": "7", "⁸": "8", "⁹": "9", "⁺": "+", "⁻": "-", "ᵀ": "\\mathsf T", "ᵏ": "k", "ⁿ": "n", "ᴮ": "B" };
const SUBSCRIPTS = { "₀": "0", "₁": "1", "₂": "2", "₃": "3", "₄": "4", "₅": "5", "₆": "6", "₇": "7", "₈": "8", "₉": "9", "₊": "+", "₋": "-", "ₖ": "k", "ᵢ": "i", "ⱼ": "j", "ₜ": "t" };
const SYMBOLS = {
  "=": "=", "<": "<", ">": ">", "≤": "\\le ", "≥": "\\ge ", "≈": "\\approx ", "≪": "\\ll ", "≫": "\\gg ", "≠": "\\ne ", "~": "\\sim ",
  "+": "+", "−": "-", "-": "-", "±": "\\pm ", "∓": "\\mp ", "·": "\\cdot ", "×": "\\times ", "/": "/", ",": ",\\,", ";": ";\\,",
  "→": "\\to ", "∈": "\\in ", "∞": "\\infty ", "∂": "\\partial ", "∫": "\\int ", "…": "\\ldots ", "∑": "\\sum ", "∏": "\\prod ",
  "|": "\\vert ", "‖": "\\Vert ", "%": "\\%", "½": "\\tfrac12 ", "¼": "\\tfrac14 ", "⌊": "\\lfloor ", "⌋": "\\rfloor ", "ℝ": "\\mathbb R ",
};
const CLOSING = { "(": ")", "[": "]", "{": "}" };
const ESCAPED = { "{": "\\{", "}": "\\}" };

class NotAFormula extends Error {}

class Reader {
  constructor(source) {
    // Accents become marks of their own; tables escape the bar.
    this.rest = source.replaceAll("\\|", "|").normalize("NFD").replaceAll("=\u0338", "≠");
  }

  take(pattern) {
    const found = this.rest.match(new RegExp(`^(?:${pattern.source})`, "u"));
    if (found) this.rest = this.rest.slice(found[0].length);
    return found?.[0];
  }

  // Everything up to a closing bracket, or to the end.
  sequence(end) {
    let out = "";
    while (this.rest && this.rest[0] !== end) out += this.atom() + this.attached();
    if (end && !this.take(/[)\]}]/)) throw new NotAFormula();
    return out;
  }

  // Brackets with their content.
  group() {
    const open = this.take(/[([{]/);
    const content = this.sequence(CLOSING[open]);
    return [ESCAPED[open] ?? open, content, ESCAPED[CLOSING[open]] ?? CLOSING[open]];
  }

  atom() {
    if (this.take(/\s+/)) return " ";
    if (/^[([{]/.test(this.rest)) return this.group().join("");
    if (this.take(/√/)) return `\\sqrt{${this.rest[0] === "(" ? this.group()[1] : this.atom()}}`;
    const number = this.take(/\d+(,\d{3})*(\.\d+)?(?!_|[A-Za-z]{2}|e[-+\d])/);
    if (number) return number.replaceAll(",", "{,}");
    const word = this.take(/[A-Za-z]\p{M}*([A-Za-z]\p{M}*)*/);
    if (word && FUNCTIONS.has(word)) return `\\${word} `;
    if (word && NAMES.has(word)) return `\\operatorname{${word.normalize("NFC")}} `;
    const letter = word ?? this.take(/[Α-Ωα-ωϕ]\p{M}*/);
    // `v2` is a name, not a product.
    if (letter && /^\d/.test(this.rest)) throw new NotAFormula();
    if (letter) return accented(letter);
    const symbol = this.take(/./);
    if (symbol in SYMBOLS) return SYMBOLS[symbol];
    throw new NotAFormula();
  }

  // Subscripts, superscripts and primes.
  attached() {
    let [below, above, primes] = ["", "", ""];
    for (;;) {
      const small = this.take(/[₀-₉₊₋ₖᵢⱼₜ]+/);
      const raised = this.take(/[⁰¹²³⁴-⁹⁺⁻ᵀᵏⁿᴮ]+/);
      if (small) below += [...small].map((character) => SUBSCRIPTS[character]).join("");
      else if (raised) above += [...raised].map((character) => SUPERSCRIPTS[character]).join("");
      else if (this.take(/['′]/)) primes += "'";
      else if (!below && this.take(/_/)) below = this.index();
      else if (this.take(/\^/)) above += this.power();
      else if (this.take(/\*(?!\w)/)) above += "*";
      else break;
    }
    return primes + (below && `_{${below}}`) + (above && `^{${above}}`);
  }

  index() {
    if (this.rest[0] === "{") return this.group()[1];
    const letters = this.take(/[A-Za-z]{3,}|[A-Za-z0-9α-ωΑ-Ω]+/);
    if (!letters) throw new NotAFormula();
    return letters.length > 2 && /^[A-Za-z]+$/.test(letters) ? `\\mathrm{${letters}}` : letters;
  }

  power() {
    if (this.rest[0] === "{") return this.group()[1];
    if (this.rest[0] === "(") return this.group().join("");
    const sign = this.take(/[−-]/) ? "-" : "";
    return sign + this.atom();
  }
}

// One letter, with its accent.
function accented(word) {
  const [letter, ...marks] = word;
  if (marks.some((mark) => !(mark in MARKS))) throw new NotAFormula();
  return marks.reduce((inner, mark) => `${MARKS[mark]}{${inner}}`, letter);
}

export function tex(code) {
  // Numbers and signs alone are values of settings, or parts of a text; `(K, d,)` is a shape.
  if (!/[A-Za-zΑ-ω²³⁻√]/u.test(code) || /^[A-Za-z]{2,}$|,\)/.test(code)) return null;
  try {
    return new Reader(code).sequence().trim();
  } catch (error) {
    if (error instanceof NotAFormula) return null;
    throw error;
  }
}
