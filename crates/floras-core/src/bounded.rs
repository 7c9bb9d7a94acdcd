//! Numbers that lie in a range by construction.

/// Declares a number with a range. `new` rejects other values with the error of a [`Choice`](crate::Choice), of which the
/// number is a parameter.
///
/// ```text
/// bounded!(
///     /// `κ`: between 0 and 1e6.
///     RicianFactor: f64, Fading, "rician", (0.0..=1e6)
/// );
/// ```
#[macro_export]
macro_rules! bounded {
    ($(#[$doc:meta])* $type:ident: $number:ty, $choice:ident, $name:literal, $range:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
        pub struct $type(pub(crate) $number);

        impl $type {
            /// Builds the number if it is in the range of the type; other values, NaN included, are an error.
            pub fn new(value: $number) -> Result<Self, $crate::ChoiceError> {
                if $range.contains(&value) {
                    Ok(Self(value))
                } else {
                    Err(<$choice as $crate::Choice>::refuse(format_args!(concat!($name, "={}"), value)))
                }
            }

            /// The number, in the range of the type.
            pub fn get(self) -> $number {
                self.0
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}
