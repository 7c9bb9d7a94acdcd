//! A set of rounds, such as those whose signal is recorded.
//!
//! Rounds are counted from 1. A set is stored as disjoint ranges in ascending order: it needs little memory, and equal sets
//! have equal text forms.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use serde::{Serialize, Serializer};

use crate::choice::{Choice, ChoiceError};

/// No round, every round, or a list of rounds and ranges: `none`, `all`, `1,5,10-20`.
///
/// ```
/// use floras_core::RoundSet;
///
/// let rounds: RoundSet = "10-20,1,5,6".parse()?;
/// assert_eq!(rounds.to_string(), "1,5-6,10-20");
/// assert!(rounds.contains(12) && !rounds.contains(7));
/// assert_eq!(rounds.count(15), 9);
/// assert_eq!(rounds.last(), Some(20));
/// # Ok::<(), floras_core::ChoiceError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoundSet(Rounds);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Rounds {
    #[default]
    None,
    All,
    /// Ascending, with a gap between any two.
    Ranges(Vec<RangeInclusive<u32>>),
}

impl RoundSet {
    /// The empty set, `none` as text.
    pub const NONE: Self = Self(Rounds::None);
    /// The set of every round, `all` as text.
    pub const ALL: Self = Self(Rounds::All);

    /// Whether the set is empty.
    pub fn is_none(&self) -> bool {
        self.0 == Rounds::None
    }

    /// Whether round `number`, from 1, is in the set.
    pub fn contains(&self, number: u32) -> bool {
        match &self.0 {
            Rounds::None => false,
            Rounds::All => true,
            Rounds::Ranges(ranges) => ranges.iter().any(|range| range.contains(&number)),
        }
    }

    /// The number of rounds from 1 to `rounds` that are in the set.
    pub fn count(&self, rounds: u32) -> u32 {
        match &self.0 {
            Rounds::None => 0,
            Rounds::All => rounds,
            Rounds::Ranges(ranges) => {
                ranges.iter().map(|range| (rounds.min(*range.end()) + 1).saturating_sub(*range.start())).sum()
            }
        }
    }

    /// The last round of a list; `None` for `none` and `all`.
    pub fn last(&self) -> Option<u32> {
        match &self.0 {
            Rounds::None | Rounds::All => None,
            Rounds::Ranges(ranges) => ranges.last().map(|range| *range.end()),
        }
    }
}

impl Choice for RoundSet {
    const WHAT: &'static str = "set of rounds";
    const FORMS: &'static [&'static str] = &["none", "all", "rounds"];
    const RANGES: &'static str = "counted from 1, such as 1,5,10-20";

    fn label(&self) -> String {
        match &self.0 {
            Rounds::None => "no round".to_owned(),
            Rounds::All => "every round".to_owned(),
            Rounds::Ranges(_) => format!("rounds {self}"),
        }
    }
}

impl FromStr for RoundSet {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        match text.trim() {
            "none" => Ok(Self::NONE),
            "all" => Ok(Self::ALL),
            list => {
                let ranges: Option<Vec<_>> = list.split(',').map(range).collect();
                ranges.map(|ranges| Self(Rounds::Ranges(joined(ranges)))).ok_or_else(|| Self::refuse(text))
            }
        }
    }
}

/// `5` or `10-20`: digits only, counted from 1, below `u32::MAX`.
fn range(text: &str) -> Option<RangeInclusive<u32>> {
    let number = |text: &str| {
        let digits = Some(text.trim()).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        digits?.parse::<u32>().ok().filter(|number| (1..u32::MAX).contains(number))
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = number(first)?..=number(last)?;
    (!range.is_empty()).then_some(range)
}

/// The same rounds in ascending order, with adjacent ranges merged.
fn joined(mut ranges: Vec<RangeInclusive<u32>>) -> Vec<RangeInclusive<u32>> {
    ranges.sort_unstable_by_key(|range| *range.start());
    let mut joined: Vec<RangeInclusive<u32>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(before) if *range.start() <= *before.end() + 1 => {
                *before = *before.start()..=*before.end().max(range.end());
            }
            _ => joined.push(range),
        }
    }
    joined
}

impl fmt::Display for RoundSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Rounds::None => f.pad("none"),
            Rounds::All => f.pad("all"),
            Rounds::Ranges(ranges) => {
                let text = |range: &RangeInclusive<u32>| match (range.start(), range.end()) {
                    (first, last) if first == last => first.to_string(),
                    (first, last) => format!("{first}-{last}"),
                };
                f.pad(&ranges.iter().map(text).collect::<Vec<String>>().join(","))
            }
        }
    }
}

impl Serialize for RoundSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RoundSet {
    /// Reads the text form, or one round as an integer.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrRound)
    }
}

struct TextOrRound;

impl Visitor<'_> for TextOrRound {
    type Value = RoundSet;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&RoundSet::allowed())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<RoundSet, E> {
        text.parse().map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<RoundSet, E> {
        number.to_string().parse().map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<RoundSet, E> {
        number.to_string().parse().map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_sets_have_equal_texts() {
        for (text, canonical) in [
            ("none", "none"),
            (" all ", "all"),
            ("7", "7"),
            ("3,2,1", "1-3"),
            ("5-9, 1-2, 4", "1-2,4-9"),
            ("1-100,20-30", "1-100"),
            ("9-9", "9"),
        ] {
            let set: RoundSet = text.parse().unwrap();
            assert_eq!(set.to_string(), canonical);
            assert_eq!(canonical.parse(), Ok(set.clone()));
            assert_eq!(serde_json::to_string(&set).unwrap(), format!("\"{canonical}\""));
        }
    }

    /// Every set of the rounds 1 to 8, as a list of single rounds.
    #[test]
    fn members_are_the_listed_rounds() {
        for bits in 1_u32..256 {
            let members: Vec<u32> = (1..=8).filter(|round| bits >> (round - 1) & 1 == 1).collect();
            let text: Vec<String> = members.iter().map(u32::to_string).collect();
            let set: RoundSet = text.join(",").parse().unwrap();
            for round in 1..=10 {
                assert_eq!(set.contains(round), members.contains(&round), "{set}");
                let up_to = members.iter().filter(|&&member| member <= round).count();
                assert_eq!(set.count(round) as usize, up_to, "{set}");
            }
            assert_eq!(set.last(), members.last().copied());
        }
        assert_eq!((RoundSet::ALL.count(9), RoundSet::NONE.count(9)), (9, 0));
    }

    #[test]
    fn texts_that_are_not_rounds_are_refused() {
        for wrong in
            ["", "0", "5-2", "1,", ",1", "-3", "+3", "1-", "1.5", "quick", "1-2-3", "4294967295", "all,1"]
        {
            let error = wrong.parse::<RoundSet>().unwrap_err();
            let allowed = "none, all or rounds (counted from 1, such as 1,5,10-20)";
            assert_eq!(error.to_string(), format!("the set of rounds must be {allowed}, not {wrong}"));
        }
    }

    #[test]
    fn an_integer_is_one_round() {
        let read = |text: &str| serde_json::from_str::<RoundSet>(text);
        assert_eq!(read("5").unwrap().to_string(), "5");
        for wrong in ["0", "-1", "1.5", "true", "[1]", "{}"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
