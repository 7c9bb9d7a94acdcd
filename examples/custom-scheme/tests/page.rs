//! The excerpts in `docs/contributing/adding-a-scheme.md` are those of this crate.

const PAGE: &str = include_str!("../../../docs/contributing/adding-a-scheme.md");
const SOURCES: [&str; 2] = [include_str!("../src/lib.rs"), include_str!("../src/main.rs")];

/// The blocks of the page in a language.
fn blocks(language: &str) -> Vec<&'static str> {
    let start = format!("\n```{language}\n");
    let (mut found, mut rest) = (Vec::new(), PAGE);
    while let Some((_, after)) = rest.split_once(&start) {
        let Some((block, after)) = after.split_once("\n```\n") else { break };
        found.push(block);
        rest = after;
    }
    found
}

/// Whole lines that follow one another in a source file.
fn is_in_source(block: &str) -> bool {
    SOURCES.iter().any(|source| format!("\n{source}").contains(&format!("\n{block}\n")))
}

#[test]
fn excerpts_on_the_page_are_in_the_source() {
    let excerpts = [blocks("rust"), blocks("toml")].concat();
    assert!(excerpts.len() >= 10, "{} excerpts", excerpts.len());
    let wrong: Vec<&str> = excerpts.into_iter().filter(|block| !is_in_source(block)).collect();
    assert!(wrong.is_empty(), "not in the source:\n{}", wrong.join("\n\n"));
}

#[test]
fn a_changed_excerpt_is_noticed() {
    let block = blocks("rust")[0];
    assert!(!is_in_source(&block.replace("max_gain", "largest_gain")));
    assert!(!is_in_source(&block[1..]));
}
