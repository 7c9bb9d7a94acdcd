//! Trial numbers of an audit's randomness, each for one use. Training counts from 0 and hardly gets as far.

/// What a colluding client changes in the noise.
pub(super) const COLLUSION: u16 = 0x8FFE;
/// What an adversary trains by itself, for one round.
pub(super) const SHADOWS: u16 = 0x8FFF;
/// One-round games, two for each canary.
pub(super) const ONE_ROUND: u16 = 0x9000;
/// Worst-case games, two for each table of scores.
pub(super) const TABLES: u16 = 0xA000;
/// Whole runs, one each.
pub(super) const WHOLE_RUNS: u16 = 0xB000;
/// The order of mini-batches of someone who names clients.
pub(super) const NAMING: u16 = u16::MAX - 3;
/// The rounds in which sequences are looked for.
pub(super) const DETECTION: u16 = u16::MAX - 2;
/// The training whose clients are despread.
pub(super) const DESPREADING: u16 = u16::MAX - 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Effort;

    /// The accounting estimates in the last one, `u16::MAX`.
    #[test]
    fn no_two_uses_share_a_trial() {
        let whole_runs = 3 * Effort::MOST_TRAININGS;
        let uses = [
            (COLLUSION, 1),
            (SHADOWS, 1),
            (ONE_ROUND, 6),
            (TABLES, 2 * (u32::from(u8::MAX) + 1)),
            (WHOLE_RUNS, whole_runs),
            (NAMING, 1),
            (DETECTION, 1),
            (DESPREADING, 1),
        ];
        for ((from, count), (next, _)) in uses.iter().zip(&uses[1..]) {
            assert!(u32::from(*from) + count <= u32::from(*next), "{from:x} runs into {next:x}");
        }
    }
}
