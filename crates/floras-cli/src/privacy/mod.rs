//! `floras account`, `floras calibrate` and `floras compose`: the privacy of a federation.

pub(crate) mod account;
pub(crate) mod calibrate;
pub(crate) mod compose;
mod experiment;
mod federation;
mod report;

pub(crate) use federation::check_options;
use floras_sim::inquiry::NO_FINITE;
pub(crate) use floras_sim::inquiry::epsilon_text;
pub(crate) use report::{NOT_APPLICABLE, views as print_views};

/// An upper bound on `ε`: a number, `> 1e5` if none up to that value is established, or `no finite ε`.
pub(crate) fn epsilon_or_above(upper: Option<f64>, above: Option<f64>) -> String {
    let out_of_reach = || above.map_or_else(|| NO_FINITE.to_owned(), |above| format!("> {above:e}"));
    upper.map_or_else(out_of_reach, epsilon_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_out_of_reach_are_not_none() {
        assert_eq!(epsilon_or_above(Some(1.5), None), "1.5000");
        assert_eq!(epsilon_or_above(None, Some(1e5)), "> 1e5");
        assert_eq!(epsilon_or_above(None, None), "no finite ε");
    }
}
