//! A file of lines that grows while it is read.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Maximum number of bytes per call of [`Tail::read`], so that the page is updated while a long file is read.
const MAX_BYTES: u64 = 8 << 20;

/// Reads the complete lines that were appended to a file since the last call.
#[derive(Debug)]
pub(crate) struct Tail {
    path: PathBuf,
    /// Number of bytes in the lines that were read.
    offset: u64,
    /// Number of lines that were read.
    lines: usize,
}

impl Tail {
    /// The file need not exist yet.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, offset: 0, lines: 0 }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Passes each new line to `handle`, without its newline. An incomplete last line is left for the next call. A file that
    /// is shorter than before is read from its beginning. Returns whether more lines can be read at once.
    pub(crate) fn read(&mut self, mut handle: impl FnMut(usize, &[u8])) -> io::Result<bool> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(error),
        };
        let length = file.metadata()?.len();
        if length < self.offset {
            (self.offset, self.lines) = (0, 0);
        }
        if length == self.offset {
            return Ok(false);
        }
        file.seek(SeekFrom::Start(self.offset))?;
        let (mut reader, mut line) = (BufReader::new(file), Vec::new());
        let start = self.offset;
        while self.offset - start < MAX_BYTES {
            line.clear();
            let read = reader.read_until(b'\n', &mut line)?;
            if line.pop() != Some(b'\n') {
                return Ok(false);
            }
            self.offset += read as u64;
            self.lines += 1;
            handle(self.lines, &line);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(tail: &mut Tail) -> Vec<String> {
        let mut lines = Vec::new();
        tail.read(|_, line| lines.push(String::from_utf8(line.to_vec()).unwrap())).unwrap();
        lines
    }

    #[test]
    fn only_complete_new_lines_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut tail = Tail::new(path.clone());
        assert_eq!(read(&mut tail), [""; 0], "the file does not exist yet");
        fs::write(&path, "one\ntw").unwrap();
        assert_eq!(read(&mut tail), ["one"]);
        assert_eq!(read(&mut tail), [""; 0]);
        fs::write(&path, "one\ntwo\nthree\n").unwrap();
        assert_eq!(read(&mut tail), ["two", "three"]);
    }

    #[test]
    fn a_shorter_file_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let mut tail = Tail::new(path.clone());
        fs::write(&path, "one\ntwo\n").unwrap();
        assert_eq!(read(&mut tail), ["one", "two"]);
        fs::write(&path, "one\n").unwrap();
        assert_eq!(read(&mut tail), ["one"]);
    }
}
