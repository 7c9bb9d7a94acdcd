//! Code shared by the schemes whose clients send a part of their update and keep the rest for later rounds.

use crate::error::{UplinkError, require};

/// The error of a number of channel uses per parameter that is out of range.
pub(super) fn require_uses(per_parameter: f64) -> Result<(), UplinkError> {
    let holds = (1e-3..=1.0).contains(&per_parameter);
    require(holds, "the number of channel uses per parameter", "between 0.001 and 1", per_parameter)
}

/// `s`: channel uses of a round, at least two.
pub(super) fn channel_uses(per_parameter: f64, parameters: usize) -> usize {
    ((per_parameter * parameters as f64).ceil() as usize).max(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_at_least_two() {
        assert_eq!([1, 10, 4010].map(|parameters| channel_uses(0.5, parameters)), [2, 5, 2005]);
        assert!(require_uses(0.5).is_ok() && require_uses(0.0).is_err() && require_uses(1.5).is_err());
    }
}
