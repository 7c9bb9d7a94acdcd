//! The field names of a struct that `serde` can read.

use std::fmt;

use serde::de::{DeserializeOwned, Deserializer, Error, Visitor};
use serde::forward_to_deserialize_any;

/// The names of the fields of `T`; none if it is not a struct.
pub(super) fn field_names<T: DeserializeOwned>() -> &'static [&'static str] {
    match T::deserialize(Names) {
        Err(Found(names)) => names,
        Ok(_) => &[],
    }
}

/// A deserializer that stops at the first struct, with the names of its fields.
struct Names;

/// The names, as the error that ends deserialization.
#[derive(Debug)]
struct Found(&'static [&'static str]);

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl std::error::Error for Found {}

impl Error for Found {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(&[])
    }
}

impl<'de> Deserializer<'de> for Names {
    type Error = Found;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Found> {
        Err(Found(&[]))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Found> {
        Err(Found(fields))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    #[serde(default)]
    #[derive(Default)]
    struct Two {
        #[serde(rename = "first-key")]
        _first: f64,
        _second: Option<u32>,
    }

    #[test]
    fn names_are_those_of_the_file() {
        assert_eq!(field_names::<Two>(), ["first-key", "_second"]);
        assert!(field_names::<f64>().is_empty());
    }
}
