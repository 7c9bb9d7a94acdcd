//! Which channels a threshold admits.

use floras_core::{Admission, Cell, Fading};

use super::{Channels, Source};
use crate::error::{UplinkError, require};

/// Number of intervals of the integral over `ln |h|`.
const INTERVALS: u32 = 8192;
/// The smallest probability with which a client reaches a threshold in a round: one admission among 1,000 clients in 1,000 rounds.
const MIN_PROBABILITY: f64 = 1e-6;
/// Standard deviations of the shadowing that a client exceeds with a probability below a thousandth of the smallest one.
const SHADOWS: f64 = 6.0;

impl Channels {
    /// Refuses an admission threshold that clients practically never reach: with a probability below 1e-6 per round. Fixed channels
    /// are not checked.
    ///
    /// ```
    /// use floras_phy::{Admission, Channels, Fading};
    ///
    /// let channels = Channels::from(Fading::Rayleigh);
    /// assert!(channels.check_admission(Admission::at_amplitude(3.7)?).is_ok());
    /// assert!(channels.check_admission(Admission::at_amplitude(3.8)?).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check_admission(&self, admission: Admission) -> Result<(), UplinkError> {
        let threshold = admission.amplitude();
        let allowed = "an amplitude that a client's channel reaches with a probability of at least 1e-6";
        let holds = self.admission_upper(threshold) >= MIN_PROBABILITY;
        require(holds, "the admission threshold for |h|", allowed, threshold)
    }

    /// An upper bound on the probability that the amplitude a client knows reaches `threshold`.
    fn admission_upper(&self, threshold: f64) -> f64 {
        let error_std = self.estimation_error_std;
        if error_std == 0.0 {
            return self.amplitude_upper(threshold);
        }
        // |h + e| reaches the threshold only if |h| or |e| reaches half of it.
        let half = 0.5 * threshold;
        self.amplitude_upper(half) + (-(half / error_std).powi(2)).exp()
    }

    /// An upper bound on the probability that `|h|` reaches `threshold`.
    fn amplitude_upper(&self, threshold: f64) -> f64 {
        match &self.source {
            Source::Fixed(_) => 1.0,
            Source::Trace(trace) => f64::from(trace.max_amplitude() >= threshold),
            Source::Fading(fading) => {
                let unequal = self.cell.filter(|cell| !cell.is_equalised());
                mean_above(*fading, threshold / unequal.map_or(1.0, strongest), |_| 1.0)
            }
        }
    }
}

/// A received amplitude that a client exceeds with a probability below 1e-9.
fn strongest(cell: Cell) -> f64 {
    cell.received_amplitude(cell.loss_db(0.0, -SHADOWS))
}

/// `E[f(|h|); |h| ≥ threshold]` for a positive threshold, by Simpson's rule over `ln |h|`.
pub(crate) fn mean_above(fading: Fading, threshold: f64, f: impl Fn(f64) -> f64) -> f64 {
    if fading == Fading::None {
        return f64::from(threshold <= 1.0) * f(1.0);
    }
    let (low, high) = fading.amplitude_range();
    let (from, to) = (low.max(threshold).ln(), high.ln());
    if from >= to {
        return 0.0;
    }
    let step = (to - from) / f64::from(INTERVALS);
    let at = |index: u32| {
        let amplitude = (from + step * f64::from(index)).exp();
        fading.amplitude_density(amplitude).unwrap_or(0.0) * amplitude * f(amplitude)
    };
    let weight = |index: u32| match index {
        0 | INTERVALS => 1.0,
        odd if odd % 2 == 1 => 4.0,
        _ => 2.0,
    };
    (0..=INTERVALS).map(|index| weight(index) * at(index)).sum::<f64>() * step / 3.0
}

#[cfg(test)]
mod tests {
    use floras_core::PathLoss;

    use super::*;
    use crate::channels::Trace;

    fn is_allowed(channels: &Channels, threshold: f64) -> bool {
        channels.check_admission(Admission::at_amplitude(threshold).unwrap()).is_ok()
    }

    /// `e^{−a²} = 10⁻⁶` at `a = 3.717`.
    #[test]
    fn thresholds_that_no_client_reaches_are_refused() {
        let rayleigh = Channels::from(Fading::Rayleigh);
        assert!(is_allowed(&rayleigh, 1e-9) && is_allowed(&rayleigh, 3.71));
        assert!(!is_allowed(&rayleigh, 3.72) && !is_allowed(&rayleigh, 1000.0));
        let constant = Channels::from(Fading::None);
        assert!(is_allowed(&constant, 1.0) && !is_allowed(&constant, 1.01));
        for text in ["rician=4", "nakagami=0.5", "nakagami=20"] {
            let channels = Channels::from(text.parse::<Fading>().unwrap());
            assert!(is_allowed(&channels, 1.1) && !is_allowed(&channels, 1000.0), "{text}");
        }
        let text = "round,client,real,imaginary\n0,0,0.6,0.8\n0,1,-3,0\n";
        let trace = Channels::from(Trace::from_reader(text.as_bytes()).unwrap());
        assert!(is_allowed(&trace, 3.0) && !is_allowed(&trace, 3.01));
    }

    /// Clients near the base station, and clients in error, reach more.
    #[test]
    fn departures_raise_what_is_reached() {
        let cell: PathLoss = "exponent=3.7,shadowing_db=8,min_distance=0.1,power_control=0".parse().unwrap();
        let unequal = Channels::from(Fading::Rayleigh).with_path_loss(cell).unwrap();
        assert!(is_allowed(&unequal, 50.0) && !is_allowed(&unequal, 1e6));
        let erring = Channels::from(Fading::None).with_estimation_error(1.0).unwrap();
        assert!(is_allowed(&erring, 3.0) && !is_allowed(&erring, 10.0));
    }
}
