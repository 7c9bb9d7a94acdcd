//! A page: one file that contains its style sheet and its script and loads nothing.
//!
//! Markup comes only from literals in the program: [`Html::raw`] takes nothing else. Text from files goes through [`escape`].

mod figure;
pub(crate) mod number;
mod typeset;

use crate::plot::Svg;
use crate::plot::picture::{SERIES, SERIES_DARK};

pub(crate) use figure::{downloads, figure, marked_figure};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// Tables with more columns have less space between them, and smaller letters in print.
const MAX_USUAL: usize = 7;

/// Escapes text so that it contains no markup.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(letter),
            // A page has no control characters.
            letter if letter.is_control() => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

/// Markup under construction.
#[derive(Debug, Default)]
pub(crate) struct Html {
    text: String,
}

impl Html {
    /// Adds markup as it is; only literals.
    pub(crate) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.text.push_str(markup);
        self
    }

    /// Adds text, with special characters escaped.
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.text.push_str(&escape(text));
        self
    }

    /// Adds `<tag class="class">text</tag>`.
    pub(crate) fn element(&mut self, tag: &'static str, class: &'static str, text: &str) -> &mut Self {
        self.around(tag, class, |inner| {
            inner.text(text);
        })
    }

    /// Adds an element whose content `fill` adds.
    pub(crate) fn around(
        &mut self,
        tag: &'static str,
        class: &'static str,
        fill: impl FnOnce(&mut Self),
    ) -> &mut Self {
        self.raw("<").raw(tag);
        if !class.is_empty() {
            self.raw(" class=\"").raw(class).raw("\"");
        }
        self.raw(">");
        fill(self);
        self.raw("</").raw(tag).raw(">\n")
    }

    /// Adds a paragraph.
    pub(crate) fn paragraph(&mut self, text: &str) -> &mut Self {
        self.element("p", "", text)
    }

    /// Adds text that was written for a terminal: words between backticks become code, numbers get the notation of a page.
    pub(crate) fn prose(&mut self, text: &str) {
        let parts: Vec<&str> = text.split('`').collect();
        if parts.len().is_multiple_of(2) {
            self.text(&typeset::numbers(text));
            return;
        }
        for (number, part) in parts.into_iter().enumerate() {
            if number % 2 == 1 {
                self.raw("<code>").text(part).raw("</code>");
            } else {
                self.text(&typeset::numbers(part));
            }
        }
    }

    /// Adds a section with its heading.
    pub(crate) fn section(&mut self, heading: &str, fill: impl FnOnce(&mut Self)) -> &mut Self {
        self.around("section", "", |section| {
            section.element("h2", "", heading);
            fill(section);
        })
    }

    /// Adds a list of notes, if there are any.
    pub(crate) fn notes(&mut self, notes: &[String]) -> &mut Self {
        if notes.is_empty() {
            return self;
        }
        self.around("ul", "notes", |list| {
            for note in notes {
                list.around("li", "", |item| item.prose(note));
            }
        })
    }

    /// Adds a link to a file near the page.
    pub(crate) fn link(&mut self, file: &str, text: &str) -> &mut Self {
        self.raw("<a href=\"").text(file).raw("\">").text(text).raw("</a>")
    }

    /// Adds a command to type.
    pub(crate) fn command(&mut self, command: &str) -> &mut Self {
        self.around("pre", "command", |block| {
            block.element("code", "", command);
        })
    }

    /// Adds a table, which scrolls on its own on narrow screens.
    pub(crate) fn table(&mut self, heading: &[&str], rows: &[Vec<Cell>]) -> &mut Self {
        let class = if heading.len() > MAX_USUAL { "scroll wide" } else { "scroll" };
        self.around("div", class, |scroll| {
            scroll.around("table", "", |table| {
                table.around("thead", "", |head| {
                    head.around("tr", "", |row| {
                        for name in heading {
                            row.element("th", "", name);
                        }
                    });
                });
                table.around("tbody", "", |body| {
                    for row in rows {
                        body.around("tr", "", |out| row.iter().for_each(|cell| cell.write(out)));
                    }
                });
            });
        })
    }

    /// Adds a picture.
    pub(crate) fn drawn(&mut self, svg: &Svg) -> &mut Self {
        self.text.push_str(svg.markup());
        self
    }

    /// Adds data for the script. Text in the data cannot end the element.
    pub(crate) fn data(&mut self, json: &str) -> &mut Self {
        self.raw("<script type=\"application/json\">");
        let safe = json.replace('&', "\\u0026").replace('<', "\\u003c").replace('>', "\\u003e");
        self.text.push_str(&safe);
        self.raw("</script>\n")
    }

    #[cfg(test)]
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }
}

/// The content of a cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Text(String),
    /// A number in digits of equal width.
    Number(String),
    /// A highlighted word, such as a verdict: good, bad or neither.
    Mark(String, Option<bool>),
    /// A number or a name with a verdict (good, bad or neither) and a remark.
    Judged {
        number: String,
        verdict: Option<(String, Option<bool>)>,
        remark: &'static str,
    },
    /// A link to a file near the page, with a remark below it.
    Link {
        text: String,
        file: String,
        remark: String,
    },
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(crate) fn number(text: impl Into<String>) -> Self {
        Self::Number(text.into())
    }

    fn write(&self, row: &mut Html) {
        match self {
            // Sentences need a minimum width on a phone, where the table scrolls.
            Self::Text(text) => {
                let class = match text.chars().count() {
                    0..=12 => "short",
                    13..=30 => "",
                    _ => "long",
                };
                row.around("td", class, |cell| cell.prose(text))
            }
            Self::Number(text) => row.element("td", "number", text),
            Self::Mark(text, verdict) => row.around("td", "", |cell| {
                cell.element("span", mark(*verdict), text);
            }),
            Self::Judged { number, verdict, remark } => row.around("td", "number", |cell| {
                cell.text(number);
                if let Some((words, good)) = verdict {
                    cell.raw(" ").element("span", mark(*good), words);
                }
                if !remark.is_empty() {
                    cell.element("span", "remark", remark);
                }
            }),
            Self::Link { text, file, remark } => row.around("td", "named", |cell| {
                cell.link(file, text);
                if !remark.is_empty() {
                    cell.element("span", "remark", remark);
                }
            }),
        };
    }
}

/// The class of a mark.
fn mark(verdict: Option<bool>) -> &'static str {
    match verdict {
        Some(true) => "mark good",
        Some(false) => "mark bad",
        None => "mark",
    }
}

/// The colours of the curves, light and dark. They are those of the files.
fn series_style() -> String {
    let variables = |colours: &[(u8, u8, u8)]| -> String {
        let one = |(number, (red, green, blue)): (usize, &(u8, u8, u8))| {
            format!(" --s{number}: #{red:02x}{green:02x}{blue:02x};")
        };
        colours.iter().enumerate().map(one).collect()
    };
    let class = |number: usize| {
        format!(
            ".l.i-s{number} {{ stroke: var(--s{number}); }} .f.i-s{number} {{ fill: var(--s{number}); }} \
             .tip .i-s{number} {{ color: var(--s{number}); }}\n"
        )
    };
    let classes: String = (0..SERIES.len()).map(class).collect();
    format!(
        ":root {{{} }}\n@media screen and (prefers-color-scheme: dark) {{ :root {{{} }} }}\n{classes}",
        variables(&SERIES),
        variables(&SERIES_DARK)
    )
}

/// A whole page.
pub(crate) fn page(title: &str, body: &Html) -> String {
    let mut out = Html::default();
    out.raw("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n");
    out.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n");
    out.raw("<meta name=\"color-scheme\" content=\"light dark\"/>\n");
    // Without an icon of its own, a browser asks the server for one.
    out.raw("<link rel=\"icon\" href=\"data:,\"/>\n");
    out.element("title", "", title);
    out.raw("<style>\n");
    out.text.push_str(&series_style());
    out.raw(STYLE).raw("</style>\n</head>\n<body>\n<main>\n");
    out.text.push_str(&body.text);
    out.raw("</main>\n<script>\n").raw(SCRIPT).raw("</script>\n</body>\n</html>\n");
    out.text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_become_markup() {
        let mut html = Html::default();
        html.paragraph("<script>alert(\"1\" & '2')</script>\u{0}");
        assert_eq!(
            html.as_str(),
            "<p>&lt;script&gt;alert(&quot;1&quot; &amp; &#39;2&#39;)&lt;/script&gt;\u{fffd}</p>\n"
        );
        let mut html = Html::default();
        html.data(r#"{"name":"</script><b>"}"#);
        assert!(!html.as_str().contains("</script><b>"));
    }
}
