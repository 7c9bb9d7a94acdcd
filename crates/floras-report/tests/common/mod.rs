//! Run directories for the tests, and checks of pages.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use floras_sim::{Entry, Experiment, PreparedRun, Summary};

/// A small, fast experiment; sections may follow it.
pub(crate) const SMALL: &str = "name = \"small\"\ntrials = 3\nrounds = 6\n[data]\ntrain = 400\ntest = 100\n";

/// Runs an experiment into a directory.
pub(crate) fn run_into(directory: &Path, text: &str) -> Summary {
    let experiment = Experiment::parse("a test", text).unwrap();
    let run = PreparedRun::new(&experiment, directory, Entry::New, 2).unwrap();
    run.run(&|_| {}, &AtomicBool::new(false)).unwrap().summary
}

/// Writes the report of a directory, checks the page, and returns it.
pub(crate) fn report(directory: &Path) -> String {
    let report = floras_report::write(directory).unwrap();
    assert_eq!(report.page, directory.join("report.html"));
    let page = fs::read_to_string(&report.page).unwrap();
    check(&page, directory);
    page
}

/// The page is well-formed, loads nothing, is not large, and links only to files that exist.
pub(crate) fn check(page: &str, directory: &Path) {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(page, options).unwrap();
    for node in document.descendants().filter(roxmltree::Node::is_element) {
        for attribute in ["src", "href", "srcset", "data", "action", "poster"] {
            if let Some(address) = node.attribute(attribute) {
                let holds_itself = address == "data:," || address.starts_with("data:image/png;base64,iVBOR");
                let is_link = node.tag_name().name() == "a" && directory.join(address).is_file();
                assert!(holds_itself || is_link, "<{} {attribute}={address}>", node.tag_name().name());
            }
        }
        assert!(!node.attributes().any(|attribute| attribute.name().starts_with("on")));
    }
    for word in ["http://", "https://", "url(", "@import", "fetch(", "XMLHttpRequest"] {
        assert!(!page.contains(word), "the page has {word}");
    }
    assert!(page.len() < 400_000, "{} bytes", page.len());
}

/// The text of the page, without style sheet and script.
pub(crate) fn words(page: &str) -> String {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let document = roxmltree::Document::parse_with_options(page, options).unwrap();
    let shown = document.descendants().filter(|node| {
        node.is_text()
            && node.parent().is_none_or(|parent| !["style", "script"].contains(&parent.tag_name().name()))
    });
    shown.filter_map(|node| node.text()).collect::<Vec<_>>().join(" ")
}
