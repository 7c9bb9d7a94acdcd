//! Data files: found under one of several names, unpacked if gzipped, never read past a bound.
//!
//! A gzipped file is recognised by its first two bytes, `1f 8b` (RFC 1952, section 2.3.1), not by its name. No
//! uncompressed file begins with them: IDX begins with `00 00`, and a CIFAR label is below 10.

use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use crate::error::LearnError;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const BUFFER: usize = 1 << 16;

/// An open file and its path for error messages.
pub(crate) struct DataFile<'a> {
    path: PathBuf,
    content: Box<dyn Read + 'a>,
}

impl DataFile<'static> {
    /// The first file that exists in `directory` among `names`, each as it is or with `.gz`; `how` states where to get it.
    pub(crate) fn find(directory: &Path, names: &[&str], how: &'static str) -> Result<Self, LearnError> {
        for name in names.iter().flat_map(|name| [name.to_string(), format!("{name}.gz")]) {
            let path = directory.join(name);
            match File::open(&path) {
                Ok(file) => return Self::new(&path, BufReader::with_capacity(BUFFER, file)),
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
                Err(error) => return Err(explain(&path, &error)),
            }
        }
        let file = names.first().copied().unwrap_or_default().to_owned();
        Err(LearnError::MissingFile { file, directory: directory.to_path_buf(), how })
    }
}

impl<'a> DataFile<'a> {
    /// A file that is already open.
    pub(crate) fn new(path: &Path, mut source: impl BufRead + 'a) -> Result<Self, LearnError> {
        let start = source.fill_buf().map_err(|error| explain(path, &error))?;
        let content: Box<dyn Read + 'a> =
            if start.starts_with(&GZIP) { Box::new(MultiGzDecoder::new(source)) } else { Box::new(source) };
        Ok(Self { path: path.to_path_buf(), content })
    }

    /// The next `most` bytes, or fewer where the file ends.
    pub(crate) fn next(&mut self, most: usize) -> Result<Vec<u8>, LearnError> {
        let mut bytes = Vec::new();
        let read = self.content.by_ref().take(most as u64).read_to_end(&mut bytes);
        read.map_err(|error| explain(&self.path, &error))?;
        Ok(bytes)
    }

    /// Whether the end of the file is reached. For a gzipped file this verifies its checksum.
    pub(crate) fn has_ended(&mut self) -> Result<bool, LearnError> {
        Ok(self.next(1)?.is_empty())
    }

    /// The error of a file with invalid content.
    pub(crate) fn malformed(&self, reason: impl Into<String>) -> LearnError {
        LearnError::malformed(&self.path, reason)
    }

    /// The last part of the path.
    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// Bytes divided by 255: numbers from 0 to 1.
pub(crate) fn unit_interval(bytes: &[u8]) -> impl Iterator<Item = f32> {
    bytes.iter().map(|&byte| f32::from(byte) / 255.0)
}

/// The decoder reports invalid content with these kinds of error, which reading a plain file never returns.
fn explain(path: &Path, error: &io::Error) -> LearnError {
    match error.kind() {
        ErrorKind::InvalidInput | ErrorKind::InvalidData => {
            LearnError::malformed(path, format!("it does not unpack as gzip ({error})"))
        }
        ErrorKind::UnexpectedEof => LearnError::malformed(path, "its gzip stream is cut short"),
        _ => LearnError::Unreadable { path: path.to_path_buf(), reason: error.to_string() },
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Directories and files for the tests of the readers.

    use std::io::Write;
    use std::path::{Path, PathBuf};
    use std::{env, fs, process};

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    /// A directory that is removed after its test.
    pub(crate) struct Directory(PathBuf);

    impl Directory {
        pub(crate) fn new(test: &str) -> Self {
            let path = env::temp_dir().join(format!("floras-learn-{}-{test}", process::id()));
            fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        pub(crate) fn path(&self) -> &Path {
            &self.0
        }

        pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
            let path = self.0.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
    }

    impl Drop for Directory {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    /// A valid file, plain or gzipped, that is truncated or has one bit flipped.
    pub(crate) fn damaged(valid: Vec<u8>) -> impl Strategy<Value = Vec<u8>> {
        let file = prop_oneof![Just(valid.clone()), Just(gzip(&valid))];
        (file, any::<prop::sample::Index>(), 0_u32..9).prop_map(|(mut bytes, place, bit)| {
            let place = place.index(bytes.len());
            if bit < 8 {
                bytes[place] ^= 1 << bit;
            } else {
                bytes.truncate(place);
            }
            bytes
        })
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{Directory, gzip};
    use super::*;

    fn file(bytes: &[u8]) -> DataFile<'_> {
        DataFile::new(Path::new("some.bin"), bytes).unwrap()
    }

    #[test]
    fn gzip_is_recognised_by_its_first_bytes() {
        let directory = Directory::new("first-bytes");
        directory.write("packed", &gzip(b"content"));
        directory.write("plain.gz", b"content");
        for name in ["packed", "plain"] {
            let mut file = DataFile::find(directory.path(), &[name], "").unwrap();
            assert_eq!(file.next(100).unwrap(), b"content");
        }
    }

    #[test]
    fn names_are_tried_in_order_plain_first() {
        let directory = Directory::new("order");
        for name in ["b", "b.gz", "a.gz"] {
            directory.write(name, name.as_bytes());
        }
        let content = |names: &[&str]| DataFile::find(directory.path(), names, "").unwrap().next(9).unwrap();
        assert_eq!(content(&["b"]), b"b");
        assert_eq!(content(&["a", "b"]), b"a.gz");
        assert_eq!(content(&["c", "b"]), b"b");
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = DataFile::find(Path::new("no-such-directory"), &["a.bin", "b.bin"], "ask a friend").err();
        assert_eq!(
            error.unwrap().to_string(),
            "the file a.bin (or a.bin.gz) is missing in the directory no-such-directory; ask a friend"
        );
    }

    #[test]
    fn a_file_instead_of_a_directory_is_missing() {
        let directory = Directory::new("not-a-directory");
        directory.write("file", b"");
        let error = DataFile::find(&directory.path().join("file"), &["a"], "").err().unwrap();
        assert!(matches!(error, LearnError::MissingFile { .. }), "{error}");
    }

    #[test]
    fn a_directory_instead_of_a_file_is_unreadable() {
        let directory = Directory::new("not-a-file");
        directory.write("a.bin/inner", b"");
        let error = DataFile::find(directory.path(), &["a.bin"], "").err().unwrap();
        assert!(matches!(error, LearnError::Unreadable { .. }), "{error}");
        assert!(error.to_string().starts_with("cannot read "), "{error}");
    }

    #[test]
    fn unpacking_stops_at_the_requested_size() {
        let packed = gzip(&[7; 1 << 20]);
        let mut file = file(&packed);
        assert_eq!(file.next(10).unwrap(), [7; 10]);
        assert!(!file.has_ended().unwrap());
    }

    #[test]
    fn all_gzip_members_are_read() {
        let packed = [gzip(b"one "), gzip(b"two")].concat();
        let mut file = file(&packed);
        assert_eq!(file.next(7).unwrap(), b"one two");
        assert!(file.has_ended().unwrap());
    }

    #[test]
    fn a_damaged_gzip_stream_is_reported() {
        let whole = gzip(&[1; 100]);
        let words = |bytes: &[u8]| file(bytes).next(1000).unwrap_err().to_string();
        assert_eq!(
            words(&whole[..whole.len() - 3]),
            "some.bin is not a valid data file: its gzip stream is cut short"
        );
        let mut flipped = whole.clone();
        let checksum = whole.len() - 8;
        flipped[checksum] ^= 1;
        assert!(words(&flipped).contains("it does not unpack as gzip (corrupt gzip"), "{}", words(&flipped));
        let followed = [whole, b"rest".to_vec()].concat();
        assert!(words(&followed).contains("gzip"), "{}", words(&followed));
    }
}
