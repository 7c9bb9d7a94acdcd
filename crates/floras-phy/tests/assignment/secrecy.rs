//! Secrets cannot be printed, copied or compared, and are wiped.

use super::*;

#[test]
fn debug_output_holds_no_secret() {
    let identity = ClientIdentity::from_secret_bytes(&SECRET);
    let mut member = GroupMember::new(key());
    member.sequence_for(&beacon(1), 1).unwrap();
    for shown in [
        format!("{:?} {:#?}", key(), key()),
        format!("{identity:?} {identity:#?}"),
        format!("{member:?} {member:#?}"),
    ] {
        assert_eq!(shown.matches("[redacted]").count(), 2);
        let lower = shown.to_lowercase();
        assert!(!lower.contains("a7a7") && !lower.contains("a7, ") && !lower.contains("167"));
    }
}

#[test]
fn secrets_are_wiped_when_dropped() {
    fn wiped<T: ZeroizeOnDrop>(_: &T) {}
    wiped(&key());
    wiped(&ClientIdentity::generate().unwrap());
    wiped(&permutation(&key(), 1, 4).unwrap());
}

/// Does not compile if the type has the trait: the call of `check` would then be
/// ambiguous.
macro_rules! assert_lacks {
    ($type:ty: $($bound:path),+) => {$({
        trait Lacks<Answer> { fn check() {} }
        impl<T> Lacks<()> for T {}
        struct Has;
        impl<T: $bound> Lacks<Has> for T {}
        <$type as Lacks<_>>::check();
    })+};
}

#[test]
fn secrets_can_be_neither_printed_copied_nor_compared() {
    assert_lacks!(GroupKey: std::fmt::Display, Clone, PartialEq);
    assert_lacks!(ClientIdentity: std::fmt::Display, Clone, PartialEq);
    assert_lacks!(GroupMember: std::fmt::Display, Clone, PartialEq);
}
