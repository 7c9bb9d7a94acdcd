//! Lines of the pages that the program writes.

/// Paragraphs in lines of at most 120 characters; tables and pictures are not wrapped.
pub(crate) fn wrap(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        if line.starts_with(['|', '!', '#']) || line.chars().count() <= 120 {
            out.push_str(line);
            out.push('\n');
            continue;
        }
        let mut width = 0;
        for word in line.split(' ') {
            let length = word.chars().count();
            if width > 0 && width + 1 + length > 120 {
                out.push('\n');
                width = 0;
            } else if width > 0 {
                out.push(' ');
                width += 1;
            }
            out.push_str(word);
            width += length;
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_wrapped_between_words() {
        let text = wrap(&format!("{}\n| {} |\n", "word ".repeat(40).trim_end(), "cell ".repeat(40)));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].len() <= 120 && lines[0].ends_with("word") && lines[1].starts_with("word"));
    }
}
