//! Purposes of the simulation's random streams, besides those of the air interface.

use floras_core::random::{Purpose, Stream};
use floras_learn::Randomness;

/// The selection of the clients of a round.
pub const SELECTION: Purpose = Purpose(64);
/// The order of a client's samples in a round.
pub const BATCHES: Purpose = Purpose(65);
/// The partition of the samples in a trial.
pub const PARTITION: Purpose = Purpose(66);
/// The initial parameters of a trial's model.
pub const INITIAL_MODEL: Purpose = Purpose(67);
/// The centres of a generated task's classes.
pub const TASK: Purpose = Purpose(68);
/// The samples of a generated client.
pub const CLIENT_SAMPLES: Purpose = Purpose(69);
/// The test samples of a generated task.
pub const TEST_SAMPLES: Purpose = Purpose(70);
/// The start of the power method, which bounds a client's smoothness.
pub const POWER_METHOD: Purpose = Purpose(71);
/// The direction of an audit's canary.
pub const CANARY: Purpose = Purpose(72);
/// The random choices of an audit's games, besides those of the air interface.
pub const GAME: Purpose = Purpose(73);
/// Noise on despread sequences in an audit.
pub const DESPREAD_NOISE: Purpose = Purpose(74);
/// The energies that an audit's detectors measure.
pub const ENERGIES: Purpose = Purpose(75);
/// The samples that an audit tries to reconstruct.
pub const PORTRAITS: Purpose = Purpose(76);
/// The values that dropout layers set to zero in a client's training.
pub const LAYER_DROPOUT: Purpose = Purpose(77);
/// The crops and flips of a client's training samples.
pub const AUGMENTATION: Purpose = Purpose(78);
/// As [`LAYER_DROPOUT`], in an adversary's own training.
pub const GAME_DROPOUT: Purpose = Purpose(82);
/// As [`AUGMENTATION`], in an adversary's own training.
pub const GAME_AUGMENTATION: Purpose = Purpose(83);
/// The selected clients that are silent in a round.
pub const DROPOUT: Purpose = Purpose(90);

/// The random numbers of a client's training; `stream` opens the client's stream of a purpose.
pub fn training(stream: impl Fn(Purpose) -> Stream) -> Randomness<Stream> {
    Randomness { order: stream(BATCHES), dropout: stream(LAYER_DROPOUT), augmentation: stream(AUGMENTATION) }
}

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
            LAYER_DROPOUT,
            AUGMENTATION,
            GAME_DROPOUT,
            GAME_AUGMENTATION,
            DROPOUT,
        ];
        for (index, purpose) in all.iter().enumerate() {
            assert!(purpose.0 >= 64 && !all[index + 1..].contains(purpose));
        }
    }
}
