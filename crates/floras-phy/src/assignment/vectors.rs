//! Reads the test vectors of `tests/vectors/` for the unit tests that need private functions.

use serde_json::Value;

/// The vectors in a file.
pub(crate) fn read(file: &str) -> Vec<Value> {
    let mut file: Value = serde_json::from_str(file).unwrap();
    serde_json::from_value(file["vectors"].take()).unwrap()
}

/// A field of hexadecimal digits.
pub(crate) fn hex<const LEN: usize>(value: &Value) -> [u8; LEN] {
    let digits = value.as_str().unwrap();
    assert_eq!(digits.len(), 2 * LEN);
    std::array::from_fn(|i| u8::from_str_radix(&digits[2 * i..2 * i + 2], 16).unwrap())
}

/// A field that is a 32-bit number.
pub(crate) fn number(value: &Value) -> u32 {
    value.as_u64().unwrap().try_into().unwrap()
}
