//! Every library and the program can be published: cargo packs them, and they embed only files of their own directory.
//!
//! Cargo does not build the packages here, because that takes minutes; the search for embedded files stands in for it.

use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::shell;

/// Compiled only for documentation tests, which run in the repository.
const ONLY_IN_REPOSITORY: &str = "floras/src/book.rs";

/// Packs all crates. It needs no network once the workspace was built.
pub(crate) fn check() -> Result<()> {
    check_embedded_files()?;
    let pack = ["package", "--locked", "--offline", "--workspace", "--no-verify", "--allow-dirty", "--quiet"];
    let unpublished = ["xtask", "chapters", "custom-scheme", "floras-python"];
    shell::run(shell::cargo().args(pack).args(unpublished.iter().flat_map(|name| ["--exclude", name])))
}

/// Fails with a list of files that are embedded from outside a crate.
fn check_embedded_files() -> Result<()> {
    let crates = shell::root().join("crates");
    let mut wrong = Vec::new();
    for entry in fs::read_dir(&crates).with_context(|| format!("cannot read {}", crates.display()))? {
        let directory = entry?.path();
        for file in shell::files(&directory, "rs")? {
            if file == crates.join(ONLY_IN_REPOSITORY) {
                continue;
            }
            let code =
                fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let here = file.parent().unwrap_or(&directory);
            let outside = embedded(&code).filter(|path| !resolved(here, path).starts_with(&directory));
            wrong.extend(outside.map(|path| format!("{} embeds {path}, outside its crate", file.display())));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// The paths in `include_str!("…")` and its relatives.
fn embedded(code: &str) -> impl Iterator<Item = &str> {
    let macros = ["include!(\"", "include_str!(\"", "include_bytes!(\""];
    macros.into_iter().flat_map(|name| code.split(name).skip(1)).filter_map(|rest| rest.split('"').next())
}

/// A path without `..`, whether or not it exists.
fn resolved(directory: &Path, relative: &str) -> PathBuf {
    let mut path = directory.to_path_buf();
    for component in Path::new(relative).components() {
        match component {
            Component::ParentDir => drop(path.pop()),
            other => path.push(other),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_embed_only_their_own_files() {
        check_embedded_files().unwrap();
    }

    #[test]
    fn embedded_paths_are_found_and_resolved() {
        let code = concat!("include_", "str!(\"../a.toml\"); include_", "bytes!(\"../../b.gz\")");
        let paths: Vec<PathBuf> = embedded(code).map(|path| resolved(Path::new("/x/src"), path)).collect();
        assert_eq!(paths, [Path::new("/x/a.toml"), Path::new("/b.gz")]);
    }
}
