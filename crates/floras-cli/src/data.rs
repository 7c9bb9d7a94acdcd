//! `floras data fetch`: get the files of a data set, from a mirror or a directory, and verify them.
//!
//! A file is verified by its uncompressed content: the SHA-256 of the content is compared with the one in [`SETS`].
//! docs/guide/data.md states where these numbers come from.

mod sets;
mod source;

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Args, Subcommand};
use flate2::bufread::MultiGzDecoder;
use floras_sim::create_directory;
use sha2::{Digest, Sha256};

use self::sets::{DataFile, SETS, Set};
use self::source::{Opened, Source};
use crate::failure::Failure;
use crate::run::print_status;
use crate::text::quoted;

/// First bytes of a gzip stream.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Size of a block in a tar archive, in bytes.
const BLOCK: usize = 512;

/// What to do with data sets.
#[derive(Debug, Subcommand)]
pub(crate) enum What {
    /// Get the files of a data set and verify their checksums.
    Fetch(Options),
}

/// Which data set, and from where.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:

  floras data fetch mnist                              from its public mirrors into data/mnist
  floras data fetch cifar10 --from ~/Downloads         from files on this machine, without a network
  floras data fetch fashion-mnist --from http://mirror.example/fashion --out sets/fashion

Files may be plain or gzipped; those of cifar10 may be in cifar-10-binary.tar.gz. A file is put in its place only if its SHA-256
is the published one. Files that are already there are verified and not fetched again.")]
pub(crate) struct Options {
    /// The data set: mnist, fashion-mnist or cifar10.
    #[arg(value_name = "SET", value_parser = SetParser)]
    set: &'static Set,

    /// A directory with the files, or a URL below which they are; the public mirrors if absent.
    #[arg(long, value_name = "DIR|URL")]
    from: Option<String>,

    /// Where to put the files; data/SET if absent.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs a command on data sets.
pub(crate) fn run(what: &What) -> Result<(), Failure> {
    let What::Fetch(Options { set, from, out }) = what;
    let sources = match from {
        Some(from) => vec![Source::parse(from)?],
        None => set.mirrors.iter().map(|mirror| Source::Url((*mirror).to_owned())).collect(),
    };
    let out = out.clone().unwrap_or_else(|| Path::new("data").join(set.name));
    let is_new = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
    let created: Vec<&Path> = out.ancestors().take_while(is_new).collect();
    create_directory(&out)?;
    let fetched = fetch(set, &sources, &out).map_err(|failure| {
        // Only empty directories are removed: files that were fetched stay.
        let _ = created.iter().try_for_each(fs::remove_dir);
        match failure {
            Failure::Data { message, is_input } if from.is_none() => {
                let message = format!("{message}\nor download the files and use --from DIR");
                Failure::Data { message, is_input }
            }
            other => other,
        }
    })?;
    let mut stdout = io::stdout().lock();
    for (file, how) in set.files.iter().zip(fetched) {
        writeln!(stdout, "{:<24}{:>10} bytes  SHA-256 verified  {how}", file.name, file.bytes)?;
    }
    writeln!(stdout, "data directory  {}", out.display())?;
    let setting = quoted(format!("data.dir={}", out.display()));
    writeln!(stdout, "use it with     --set data.set={} --set {setting}", set.name)?;
    Ok(())
}

/// Gets all missing files of a set, and returns the origin of each file.
fn fetch(set: &Set, sources: &[Source], out: &Path) -> Result<Vec<String>, Failure> {
    let mut found: Vec<Option<String>> = Vec::new();
    // Files that are there and are not those of the set, each with the reason.
    let mut wrong = Vec::new();
    for file in set.files {
        remove_stale(&partial(file, out));
        let path = out.join(file.name);
        if path.is_dir() {
            let message = format!("{} is a directory, and the file of the set has that name", path.display());
            return Err(Failure::Data { message, is_input: true });
        }
        let checked = File::open(&path).ok().map(|there| check(file, BufReader::new(there), &mut io::sink()));
        found.push(matches!(checked, Some(Ok(()))).then(|| "already there".to_owned()));
        if let Some(Err(reason)) = checked {
            wrong.push((path, reason));
        }
    }
    let mut tried = Vec::new();
    for source in sources {
        if found.iter().all(Option::is_some) {
            break;
        }
        print_status(&format!("looking in {source}"));
        let mut from_source = Tried::default();
        for name in set.archive.into_iter().filter(|_| source.is_url()) {
            from_source.archive(set, source, name, out, &mut found);
        }
        for (file, found) in set.files.iter().zip(&mut found) {
            if found.is_none() {
                *found = from_source.file(file, source, out);
            }
        }
        for name in set.archive.into_iter().filter(|_| !source.is_url()) {
            if found.iter().any(Option::is_none) {
                from_source.archive(set, source, name, out, &mut found);
            }
        }
        if found.iter().any(Option::is_none) {
            tried.extend(from_source.reasons);
        }
    }
    let missing: Vec<&str> = set
        .files
        .iter()
        .zip(&found)
        .filter(|(_, found)| found.is_none())
        .map(|(file, _)| file.name)
        .collect();
    if missing.is_empty() {
        for (path, reason) in wrong {
            print_status(&format!("note: {} was replaced: {reason}", path.display()));
        }
        for reason in tried {
            print_status(&format!("note: {reason}"));
        }
        return Ok(found.into_iter().flatten().collect());
    }
    let kept = wrong.iter().filter(|(path, _)| missing.iter().any(|name| path.ends_with(name)));
    let kept = kept.map(|(path, reason)| format!("{} is there and not used: {reason}", path.display()));
    let reasons = kept.chain(tried).map(|reason| format!("\n  {reason}")).collect::<String>();
    let message = format!("cannot get {} of {}; tried:{reasons}", missing.join(", "), set.name);
    Err(Failure::Data { message, is_input: false })
}

/// The reasons why one source did not provide files.
#[derive(Default)]
struct Tried {
    reasons: Vec<String>,
    /// The server did not answer, or stopped: the other files of this source need not be tried.
    is_gone: bool,
}

impl Tried {
    /// Tries to get one file, under each of its names.
    fn file(&mut self, file: &DataFile, source: &Source, out: &Path) -> Option<String> {
        let before = self.reasons.len();
        for name in source.names(file.name) {
            let Some((place, opened)) = self.open(source, &name) else { continue };
            let has_stalled = opened.has_stalled.clone();
            match put(file, opened.reader(&place), out) {
                Ok(()) => return Some(format!("from {place}")),
                Err(reason) => self.failed(&place, &reason, &has_stalled),
            }
        }
        if self.reasons.len() == before && !source.is_url() {
            self.reasons.push(format!("{source}: no {}, plain or gzipped", file.name));
        }
        None
    }

    /// Tries to get all missing files from an archive.
    fn archive(&mut self, set: &Set, source: &Source, name: &str, out: &Path, found: &mut [Option<String>]) {
        let Some((place, opened)) = self.open(source, name) else { return };
        let has_stalled = opened.has_stalled.clone();
        let unpacked = unzipped(opened.reader(&place)).map_err(|error| error.to_string());
        let result = unpacked.and_then(|archive| {
            each_entry(archive, |name, entry| {
                let member = name.rsplit('/').next().unwrap_or(name);
                let wanted = set.files.iter().position(|file| file.name == member);
                let Some(index) = wanted.filter(|&index| found[index].is_none()) else { return Ok(()) };
                put(&set.files[index], BufReader::new(entry), out)
                    .map_err(|reason| format!("{name}: {reason}"))?;
                found[index] = Some(format!("from {place}"));
                Ok(())
            })
        });
        if let Err(reason) = result {
            self.failed(&place, &reason, &has_stalled);
        }
    }

    fn failed(&mut self, place: &str, reason: &str, has_stalled: &AtomicBool) {
        self.reasons.push(format!("{place}: {reason}"));
        self.is_gone |= has_stalled.load(Ordering::Relaxed);
    }

    /// Opens a file of a source.
    fn open(&mut self, source: &Source, name: &str) -> Option<(String, Opened)> {
        if self.is_gone {
            return None;
        }
        let place = source.place(name);
        match source.open(name) {
            Ok(opened) => Some((place, opened)),
            Err(error) => {
                self.is_gone = error.is_gone;
                self.reasons.extend(error.reason.map(|reason| format!("{place}: {reason}")));
                None
            }
        }
    }
}

/// The temporary name of a file.
fn partial(file: &DataFile, out: &Path) -> PathBuf {
    out.join(format!(".{}.partial", file.name))
}

/// Opens a temporary file and locks it for this process. A killed process leaves it unlocked.
fn lock(partial: &Path) -> io::Result<File> {
    let file = File::options().create(true).truncate(false).write(true).open(partial)?;
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => {
            io::Error::new(io::ErrorKind::WouldBlock, "another process is fetching this file")
        }
        TryLockError::Error(error) => error,
    })?;
    Ok(file)
}

/// Removes the temporary file of an interrupted fetch.
fn remove_stale(partial: &Path) {
    if partial.exists() && lock(partial).is_ok() {
        // A file that stays is overwritten by the next fetch.
        let _ = fs::remove_file(partial);
    }
}

/// Writes a file under a temporary name, verifies it, and then renames it.
fn put(file: &DataFile, content: impl BufRead, out: &Path) -> Result<(), String> {
    let partial = partial(file, out);
    let mut target = lock(&partial).map_err(|error| error.to_string())?;
    let write = || {
        target.set_len(0).map_err(|error| error.to_string())?;
        check(file, content, &mut target)?;
        target.sync_all().map_err(|error| error.to_string())?;
        fs::rename(&partial, out.join(file.name)).map_err(|error| error.to_string())
    };
    let written = write();
    if written.is_err() {
        // The reason for the error is the one to report.
        let _ = fs::remove_file(&partial);
    }
    written
}

/// Copies a file, unpacked if it is gzipped, and compares its size and its checksum with the published ones.
fn check(file: &DataFile, content: impl BufRead, out: &mut impl Write) -> Result<(), String> {
    // One byte more than expected shows that a file is too long.
    let mut content = unzipped(content).map_err(|error| error.to_string())?.take(file.bytes + 1);
    let (mut sha, mut part, mut bytes) = (Sha256::new(), vec![0; 1 << 16], 0);
    loop {
        let count = content.read(&mut part).map_err(|error| format!("it cannot be read: {error}"))?;
        if count == 0 {
            break;
        }
        sha.update(&part[..count]);
        out.write_all(&part[..count]).map_err(|error| format!("cannot write it: {error}"))?;
        bytes += count as u64;
    }
    if bytes != file.bytes {
        let found = if bytes > file.bytes { format!("more than {}", file.bytes) } else { bytes.to_string() };
        return Err(format!("{} must have {} bytes, not {found}", file.name, file.bytes));
    }
    let found: String = sha.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    if found != file.sha256 {
        return Err(format!("{} must have the SHA-256 {}, not {found}", file.name, file.sha256));
    }
    Ok(())
}

/// The content of a file, unpacked if its first bytes are those of gzip.
fn unzipped<'a>(mut content: impl BufRead + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let is_gzipped = content.fill_buf()?.starts_with(&GZIP);
    Ok(if is_gzipped { Box::new(MultiGzDecoder::new(content)) } else { Box::new(content) })
}

/// Passes every regular file of a tar archive (POSIX ustar) to `visit`, with its name.
fn each_entry(
    mut archive: impl Read,
    mut visit: impl FnMut(&str, &mut dyn Read) -> Result<(), String>,
) -> Result<(), String> {
    let damaged = |error: io::Error| format!("the archive cannot be read: {error}");
    let mut header = [0; BLOCK];
    loop {
        archive.read_exact(&mut header).map_err(damaged)?;
        if header.iter().all(|&byte| byte == 0) {
            return Ok(());
        }
        let field = |range: std::ops::Range<usize>| {
            let text: Vec<u8> = header[range].iter().copied().take_while(|&byte| byte != 0).collect();
            String::from_utf8_lossy(&text).into_owned()
        };
        let size = u64::from_str_radix(field(124..136).trim(), 8)
            .map_err(|_| "the archive is not in tar format".to_owned())?;
        let mut entry = (&mut archive).take(size.next_multiple_of(BLOCK as u64));
        if matches!(header[156], b'0' | 0) {
            visit(&field(0..100), &mut (&mut entry).take(size))?;
        }
        io::copy(&mut entry, &mut io::sink()).map_err(damaged)?;
    }
}

/// The parser of a data set's name; help and completions list the names.
#[derive(Clone, Copy)]
struct SetParser;

impl TypedValueParser for SetParser {
    type Value = &'static Set;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<&'static Set, clap::Error> {
        let parse = |text: &str| SETS.iter().find(|set| set.name == text).ok_or_else(allowed);
        TypedValueParser::parse_ref(&parse, command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(SETS.iter().map(|set| PossibleValue::new(set.name))))
    }
}

/// The names of the sets, in words.
fn allowed() -> String {
    let names: Vec<&str> = SETS.iter().map(|set| set.name).collect();
    format!("expected one of {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::TcpListener;
    use std::thread;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// SHA-256 of "abc" and of the empty text: FIPS 180-4, examples.
    const FILES: &[DataFile] = &[
        DataFile {
            name: "letters",
            bytes: 3,
            sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        },
        DataFile {
            name: "nothing",
            bytes: 0,
            sha256: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        },
    ];
    const PLAIN: Set = Set { name: "plain", files: FILES, archive: None, mirrors: &[] };
    const PACKED: Set = Set { archive: Some("all.tar.gz"), ..PLAIN };

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut archive = Vec::new();
        for (name, content) in files {
            let mut header = [0; BLOCK];
            header[..name.len()].copy_from_slice(name.as_bytes());
            header[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
            header[156] = b'0';
            archive.extend(header);
            archive.extend(*content);
            archive.resize(archive.len().next_multiple_of(BLOCK), 0);
        }
        archive.resize(archive.len() + 2 * BLOCK, 0);
        archive
    }

    /// Files below a URL of this machine.
    fn serve(files: &[(&str, Vec<u8>)]) -> Source {
        let files: BTreeMap<String, Vec<u8>> =
            files.iter().map(|(name, content)| (format!("/sets/{name}"), content.clone())).collect();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/sets", listener.local_addr().unwrap());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut request = String::new();
                reader.read_line(&mut request).unwrap();
                let mut line = String::new();
                while line != "\r\n" {
                    line.clear();
                    reader.read_line(&mut line).unwrap();
                }
                let path = request.split(' ').nth(1).unwrap();
                let (status, content) = match files.get(path) {
                    Some(content) => ("200 OK", content.clone()),
                    None => ("404 Not Found", Vec::new()),
                };
                let head = format!(
                    "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                    content.len()
                );
                stream.write_all(head.as_bytes()).unwrap();
                stream.write_all(&content).unwrap();
            }
        });
        Source::parse(&url).unwrap()
    }

    fn directory(files: &[(&str, Vec<u8>)]) -> (tempfile::TempDir, Source) {
        let directory = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let source = Source::parse(&directory.path().display().to_string()).unwrap();
        (directory, source)
    }

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn files_are_found_in_a_directory() {
        let out = tempfile::tempdir().unwrap();
        let (_keep, source) = directory(&[("letters.gz", gzip(b"abc")), ("nothing", Vec::new())]);
        fetch(&PLAIN, &[source], out.path()).unwrap();
        assert_eq!(names(out.path()), ["letters", "nothing"]);
        assert_eq!(fs::read(out.path().join("letters")).unwrap(), b"abc");
    }

    #[test]
    fn files_are_fetched_from_a_server() {
        let out = tempfile::tempdir().unwrap();
        let source = serve(&[("letters.gz", gzip(b"abc")), ("nothing.gz", gzip(b""))]);
        let from = fetch(&PLAIN, &[source], out.path()).unwrap();
        assert_eq!(fs::read(out.path().join("letters")).unwrap(), b"abc");
        assert!(
            from[0].starts_with("from http://127.0.0.1:") && from[0].ends_with("/sets/letters.gz"),
            "{from:?}"
        );
    }

    #[test]
    fn archives_are_unpacked() {
        let archive = gzip(&tar(&[("sub/readme", b"x"), ("sub/letters", b"abc"), ("sub/nothing", b"")]));
        let (_keep, local) = directory(&[("all.tar.gz", archive.clone())]);
        for source in [local, serve(&[("all.tar.gz", archive)])] {
            let out = tempfile::tempdir().unwrap();
            fetch(&PACKED, &[source], out.path()).unwrap();
            assert_eq!(names(out.path()), ["letters", "nothing"]);
        }
    }

    #[test]
    fn the_next_mirror_is_tried() {
        let out = tempfile::tempdir().unwrap();
        let empty = serve(&[]);
        let (_keep, damaged) = directory(&[("letters", b"abd".to_vec()), ("nothing", Vec::new())]);
        let good = serve(&[("letters", b"abc".to_vec())]);
        let from = fetch(&PLAIN, &[empty, damaged, good], out.path()).unwrap();
        assert!(from[0].starts_with("from http://") && from[1].ends_with("nothing"), "{from:?}");
    }

    #[test]
    fn a_wrong_checksum_is_named() {
        let out = tempfile::tempdir().unwrap();
        let (_keep, source) = directory(&[("letters", b"abd".to_vec()), ("nothing", Vec::new())]);
        let error = fetch(&PLAIN, &[source], out.path()).unwrap_err().to_string();
        assert!(error.starts_with("cannot get letters of plain; tried:\n"), "{error}");
        assert!(
            error.contains(&format!("letters must have the SHA-256 {}, not ", FILES[0].sha256)),
            "{error}"
        );
        assert!(
            error.contains("not a52d159f262b2c6ddb724a61840befc36eb30c88877a4030b65cbe86298449c9"),
            "{error}"
        );
        assert_eq!(names(out.path()), ["nothing"], "no unverified file is left");
    }

    #[test]
    fn a_wrong_size_is_named() {
        let out = tempfile::tempdir().unwrap();
        for (content, found) in [(&b"ab"[..], "not 2"), (b"abcd", "not more than 3")] {
            let (_keep, source) = directory(&[("letters", content.to_vec()), ("nothing", Vec::new())]);
            let error = fetch(&PLAIN, &[source], out.path()).unwrap_err().to_string();
            assert!(error.contains(&format!("letters must have 3 bytes, {found}")), "{error}");
        }
    }

    #[test]
    fn verified_files_are_kept_and_others_replaced() {
        let out = tempfile::tempdir().unwrap();
        fs::write(out.path().join("letters"), "half").unwrap();
        fs::write(out.path().join("nothing"), "").unwrap();
        let (_keep, source) = directory(&[("letters", b"abc".to_vec())]);
        let from = fetch(&PLAIN, &[source], out.path()).unwrap();
        assert_eq!(from[1], "already there");
        assert_eq!(fs::read(out.path().join("letters")).unwrap(), b"abc");
    }

    #[test]
    fn partial_files_of_killed_fetches_are_removed() {
        let out = tempfile::tempdir().unwrap();
        let [stale, used] = [&FILES[0], &FILES[1]].map(|file| partial(file, out.path()));
        fs::write(&stale, "a").unwrap();
        let held = lock(&used).unwrap();
        let (_keep, source) = directory(&[("letters", b"abc".to_vec()), ("nothing", Vec::new())]);
        let error = fetch(&PLAIN, &[source], out.path()).unwrap_err().to_string();
        assert!(error.contains("another process is fetching this file"), "{error}");
        assert_eq!(names(out.path()), [".nothing.partial", "letters"]);
        drop(held);
        fetch(&PLAIN, &[serve(&[])], out.path()).unwrap_err();
        assert_eq!(names(out.path()), ["letters"]);
    }

    /// A server that sends one byte of the file and then nothing.
    #[test]
    fn servers_that_stop_are_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let source = Source::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        thread::spawn(move || {
            let streams: Vec<_> = listener
                .incoming()
                .map(|stream| {
                    let mut stream = stream.unwrap();
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\na").unwrap();
                    stream
                })
                .collect();
            drop(streams);
        });
        let out = tempfile::tempdir().unwrap();
        let error = fetch(&PLAIN, &[source], out.path()).unwrap_err().to_string();
        assert_eq!(error.matches("http://").count(), 1, "{error}");
        assert!(
            error.contains("/letters.gz: it cannot be read: the server has sent nothing for 2 s"),
            "{error}"
        );
        assert!(names(out.path()).is_empty());
    }

    #[test]
    fn wrong_files_are_replaced_only_by_others() {
        let out = tempfile::tempdir().unwrap();
        fs::write(out.path().join("letters"), "half").unwrap();
        let error = fetch(&PLAIN, &[serve(&[])], out.path()).unwrap_err().to_string();
        assert!(error.contains("letters is there and not used: letters must have 3 bytes"), "{error}");
        assert_eq!(fs::read(out.path().join("letters")).unwrap(), b"half");
        fs::remove_file(out.path().join("letters")).unwrap();
        fs::create_dir(out.path().join("letters")).unwrap();
        let error = fetch(&PLAIN, &[serve(&[])], out.path()).unwrap_err().to_string();
        assert!(error.ends_with("letters is a directory, and the file of the set has that name"), "{error}");
    }

    #[test]
    fn directories_among_files_are_named_once() {
        let (keep, source) = directory(&[("nothing", Vec::new())]);
        fs::create_dir(keep.path().join("letters")).unwrap();
        let out = tempfile::tempdir().unwrap();
        let error = fetch(&PLAIN, &[source], out.path()).unwrap_err().to_string();
        assert_eq!(error.matches("/letters: it is a directory").count(), 1, "{error}");
    }

    #[test]
    fn addresses_without_a_host_are_rejected() {
        for text in ["http://", "https:///mnist", "http:///"] {
            let error = Source::parse(text).unwrap_err().to_string();
            assert!(error.ends_with(&format!("http://mirror.example/mnist, not {text}")), "{error}");
        }
    }

    #[test]
    fn a_server_that_is_gone_is_tried_once() {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let source = Source::parse(&format!("http://127.0.0.1:{port}")).unwrap();
        let out = tempfile::tempdir().unwrap();
        let error = fetch(&PACKED, &[source], out.path()).unwrap_err().to_string();
        assert_eq!(error.matches("http://").count(), 1, "{error}");
    }

    #[test]
    fn checksums_are_complete() {
        for set in SETS {
            for file in set.files {
                assert!(
                    file.sha256.len() == 64 && file.sha256.bytes().all(|digit| digit.is_ascii_hexdigit())
                );
            }
        }
    }
}
