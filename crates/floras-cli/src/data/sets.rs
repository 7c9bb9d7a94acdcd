//! The data sets that can be fetched: files, sizes, checksums and mirrors.
//!
//! Checksums are of the uncompressed files. docs/guide/data.md states where they come from.

/// A file of a data set.
#[derive(Debug)]
pub(super) struct DataFile {
    /// Its name, without `.gz`.
    pub(super) name: &'static str,
    /// Its uncompressed size in bytes.
    pub(super) bytes: u64,
    /// SHA-256 of its uncompressed content, in hexadecimal digits.
    pub(super) sha256: &'static str,
}

/// A data set.
#[derive(Debug)]
pub(super) struct Set {
    /// The value of `data.set`.
    pub(super) name: &'static str,
    pub(super) files: &'static [DataFile],
    /// Name of a tar archive that contains all files.
    pub(super) archive: Option<&'static str>,
    /// Public servers, tried in this order. Content is verified, so that plain HTTP is safe.
    pub(super) mirrors: &'static [&'static str],
}

const fn file(name: &'static str, bytes: u64, sha256: &'static str) -> DataFile {
    DataFile { name, bytes, sha256 }
}

/// All data sets.
pub(super) const SETS: &[Set] = &[
    Set {
        name: "mnist",
        files: &[
            file(
                "train-images-idx3-ubyte",
                47_040_016,
                "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            ),
            file(
                "train-labels-idx1-ubyte",
                60_008,
                "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            ),
            file(
                "t10k-images-idx3-ubyte",
                7_840_016,
                "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            ),
            file(
                "t10k-labels-idx1-ubyte",
                10_008,
                "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            ),
        ],
        archive: None,
        mirrors: &[
            "http://ossci-datasets.s3.amazonaws.com/mnist",
            "http://storage.googleapis.com/cvdf-datasets/mnist",
            "https://ossci-datasets.s3.amazonaws.com/mnist",
        ],
    },
    Set {
        name: "fashion-mnist",
        files: &[
            file(
                "train-images-idx3-ubyte",
                47_040_016,
                "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            ),
            file(
                "train-labels-idx1-ubyte",
                60_008,
                "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            ),
            file(
                "t10k-images-idx3-ubyte",
                7_840_016,
                "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            ),
            file(
                "t10k-labels-idx1-ubyte",
                10_008,
                "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
            ),
        ],
        archive: None,
        mirrors: &[
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com",
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion",
        ],
    },
    Set {
        name: "cifar10",
        files: &[
            file(
                "data_batch_1.bin",
                30_730_000,
                "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
            ),
            file(
                "data_batch_2.bin",
                30_730_000,
                "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
            ),
            file(
                "data_batch_3.bin",
                30_730_000,
                "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
            ),
            file(
                "data_batch_4.bin",
                30_730_000,
                "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
            ),
            file(
                "data_batch_5.bin",
                30_730_000,
                "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
            ),
            file(
                "test_batch.bin",
                30_730_000,
                "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
            ),
        ],
        archive: Some("cifar-10-binary.tar.gz"),
        mirrors: &["http://www.cs.toronto.edu/~kriz", "https://www.cs.toronto.edu/~kriz"],
    },
];
