//! What the simulation draws at random, beside what the air interface draws.

use floras_core::random::Purpose;

/// Which clients take part in a round.
pub const SELECTION: Purpose = Purpose(64);
/// The order of a client's samples in a round.
pub const BATCHES: Purpose = Purpose(65);
/// Who holds which samples in a trial.
pub const PARTITION: Purpose = Purpose(66);
/// Where a trial's training begins.
pub const INITIAL_MODEL: Purpose = Purpose(67);
/// The centres of a generated task's classes.
pub const TASK: Purpose = Purpose(68);
/// The samples of a generated client.
pub const CLIENT_SAMPLES: Purpose = Purpose(69);
/// The test samples of a generated task.
pub const TEST_SAMPLES: Purpose = Purpose(70);
/// Where the power method begins that bounds a client's smoothness.
pub const POWER_METHOD: Purpose = Purpose(71);
/// Which way an audit's canary points.
pub const CANARY: Purpose = Purpose(72);
/// What happens in an audit's games beside what the air interface draws.
pub const GAME: Purpose = Purpose(73);
/// Noise on despread sequences in an audit.
pub const DESPREAD_NOISE: Purpose = Purpose(74);
/// The energies that an audit's detectors meet.
pub const ENERGIES: Purpose = Purpose(75);
/// Which samples an audit tries to reconstruct.
pub const PORTRAITS: Purpose = Purpose(76);
/// Which of the selected clients are silent in a round.
pub const DROPOUT: Purpose = Purpose(90);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purposes_have_distinct_streams() {
        let all = [
            SELECTION,
            BATCHES,
            PARTITION,
            INITIAL_MODEL,
            TASK,
            CLIENT_SAMPLES,
            TEST_SAMPLES,
            POWER_METHOD,
            CANARY,
            GAME,
            DESPREAD_NOISE,
            ENERGIES,
            PORTRAITS,
            DROPOUT,
        ];
        for (index, purpose) in all.iter().enumerate() {
            assert!(purpose.0 >= 64 && !all[index + 1..].contains(purpose));
        }
    }
}
