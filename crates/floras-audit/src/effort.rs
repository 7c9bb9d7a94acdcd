//! The effort of an audit: numbers of games and trainings, and confidence.

use floras_sim::SimError;

/// The effort of an audit: numbers of games and trainings, and the joint confidence of its results.
///
/// ```
/// use floras_audit::Effort;
///
/// let effort = Effort::new(4000, 0, 0.9)?;
/// assert_eq!((effort.games(), effort.trainings(), effort.confidence()), (4000, 0, 0.9));
/// assert!(Effort::new(10, 0, 0.9).is_err());
/// # Ok::<(), floras_sim::SimError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    games: u32,
    trainings: u32,
    confidence: f64,
}

impl Default for Effort {
    fn default() -> Self {
        Self { games: 2_000_000, trainings: 200, confidence: 0.95 }
    }
}

impl Effort {
    /// # Arguments
    /// * `games`: rounds per row of the table, in both worlds together; from 1000 to 10⁸.
    /// * `trainings`: whole trainings per canary that needs them, in both worlds together; at most 2000.
    /// * `confidence`: the joint confidence of all rows of the table; from 0.5 to 0.999999.
    pub fn new(games: u32, trainings: u32, confidence: f64) -> Result<Self, SimError> {
        let refused = |name, allowed, value: f64| Err(SimError::Effort { name, allowed, value });
        if !(1000..=100_000_000).contains(&games) {
            return refused("the number of games", "between 1000 and 100000000", games.into());
        }
        if trainings > 2000 {
            return refused("the number of trainings", "at most 2000", trainings.into());
        }
        if !(0.5..=0.999_999).contains(&confidence) {
            return refused("the confidence", "between 0.5 and 0.999999", confidence);
        }
        Ok(Self { games, trainings, confidence })
    }

    /// Rounds per row of the table, in both worlds together.
    pub fn games(self) -> u32 {
        self.games
    }

    /// Rounds for sequence detection: 2000 at the default effort, fewer below 200,000 games.
    pub(crate) fn detection_rounds(self) -> u32 {
        (self.games / 100).clamp(100, 2000)
    }

    /// Whole trainings per canary that needs them, in both worlds together.
    pub fn trainings(self) -> u32 {
        self.trainings
    }

    /// The joint confidence of all rows of the table.
    pub fn confidence(self) -> f64 {
        self.confidence
    }
}
