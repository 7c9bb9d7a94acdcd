//! Numbers that lie in a range by construction.

/// Declares a number that lies in a range: `new` refuses others on behalf of a choice.
macro_rules! bounded {
    ($(#[$doc:meta])* $type:ident, $choice:ident, $name:literal, $range:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
        pub struct $type(pub(crate) f64);

        impl $type {
            /// The number, if it is in range.
            pub fn new(value: f64) -> Result<Self, $crate::ChoiceError> {
                if $range.contains(&value) {
                    Ok(Self(value))
                } else {
                    Err(<$choice as $crate::Choice>::refuse(format_args!(concat!($name, "={}"), value)))
                }
            }

            /// The number.
            pub fn get(self) -> f64 {
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

pub(crate) use bounded;
